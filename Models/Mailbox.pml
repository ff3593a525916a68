// The mailbox: `Mailbox.post`, `collect`, `fallAsleep`, `wakeUp`, `closeIfEmpty`, and the event descriptor that wakes the
// loop. Each statement that touches what threads share is one step of one thread. Read README.md first.

#ifndef POSTERS
#define POSTERS 3
#endif
#ifndef POSTS
#define POSTS 2
#endif
// Sleeps that end at a date, without mail.
#define DATES 1

// The states of the word, as `Signal` of Mailbox.swift.
#define NONE 0
#define ASLEEP 1
#define MAIL 2

byte word = NONE;
bool edge;                              // The event descriptor was written since the loop's last wait.
bool locked;
bool closed;
chan mail = [POSTERS * POSTS] of { byte, byte };
byte accepted[POSTERS];                 // The posts that each thread was told would be taken.
byte taken[POSTERS];
byte ended;                             // The threads that post nothing more.

inline lock() { atomic { !locked; locked = true } }
inline unlock() { locked = false }

// `noteMail`: under the lock.
inline note() {
    if
    :: word == MAIL -> skip
    :: else -> d_step { wakes = (word == ASLEEP); word = MAIL }
    fi
}

proctype Poster(byte self) {
    byte number;
    bool wakes, refused;
    do
    :: number == POSTS -> break
    :: else ->
        wakes = false;
#ifdef FAULT_NOTE_BEFORE_APPEND         // The word tells of mail that is not there yet.
        note();
        lock();
        mail!self, number;
#else
        lock();
        mail!self, number;
        note();
#endif
        refused = closed;
        unlock();
        if
        :: wakes -> edge = true
        :: else -> skip
        fi;
        atomic {
            if
            :: refused -> skip
            :: else -> accepted[self]++
            fi;
            number++;
            refused = false
        }
    od;
    ended++
}

// `collect`: every letter once, and those of one thread in their order.
inline collect() {
    lock();
#ifndef FAULT_CLEAR_AFTER_TAKING
    word = NONE;
#endif
    d_step {
        do
        :: mail?sender, letter -> assert(letter == taken[sender]); taken[sender]++
        :: empty(mail) -> break
        od;
        letter = 0;
        sender = 0
    }
    unlock();
#ifdef FAULT_CLEAR_AFTER_TAKING         // A post between taking and clearing believes that the loop knows of it.
    word = NONE;
#endif
}

active proctype Loop() {
    byte sender, letter, dates, poster;
    bool sleeps;
    atomic {
        do
        :: poster < POSTERS -> run Poster(poster); poster++
        :: else -> break
        od
    }
pass:
    if
    :: word == MAIL -> collect()
    :: else -> skip
    fi;
    // `fallAsleep`
#ifdef FAULT_LOOK_THEN_SLEEP            // A post between the look and the store.
    if
    :: word == NONE -> sleeps = true; word = ASLEEP
    :: else -> sleeps = false
    fi;
#else
    atomic {
        sleeps = (word == NONE);
        if
        :: sleeps -> word = ASLEEP
        :: else -> skip
        fi
    }
#endif
#ifdef FAULT_EDGE_CLEARED_BEFORE_WAIT   // A wake-up from before the sleep is taken for an old one.
    edge = false;
#endif
    // `driver.wait`. While it sleeps, the loop never has mail of which nobody tells it: it would stay here for ever.
waits:
    if
    :: !sleeps -> edge = false
    :: sleeps && edge -> edge = false
    :: sleeps && dates < DATES -> dates++
    :: sleeps && ended == POSTERS && !edge && word == ASLEEP -> assert(empty(mail)); goto closing
    fi;
    if
    :: sleeps ->
        // `wakeUp`
#ifdef FAULT_WAKE_UP_CLEARS             // Mail that has just come is forgotten.
        word = NONE
#else
        atomic { if :: word == ASLEEP -> word = NONE :: else -> skip fi }
#endif
    :: else -> skip
    fi;
    if
    :: true -> goto pass
    :: true -> goto closing             // The loop ends, while others post or not.
    fi;
closing:
#ifdef FAULT_CLOSE_BY_WORD              // A post after the look is accepted and never taken.
    if
    :: word == MAIL -> collect(); goto closing
    :: else -> skip
    fi;
    lock();
    closed = true;
    unlock();
#else
    // `closeIfEmpty`
    lock();
    closed = empty(mail);
    unlock();
    if
    :: closed -> skip
    :: else -> collect(); goto closing
    fi;
#endif
    // Whatever was accepted was taken, and nothing else.
    ended == POSTERS;
    poster = 0;
    do
    :: poster < POSTERS -> assert(accepted[poster] == taken[poster]); poster++
    :: else -> break
    od
}
