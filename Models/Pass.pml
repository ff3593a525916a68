// Runs of a loop with two modes, nested once: two timers, blocks of the loop and of another thread, a custom source, a
// descriptor, and stops. The steps are the rows of pass.table, of which Models/check makes rows.h; this file has the meaning
// of their guards and events. Variables whose names begin with `true_` are what the assertions go by: the model reads them
// nowhere else, so that a fault cannot bend them. Read README.md first.

// Modes, as bits.
#define DEFAULT 1
#define TRACKING 2
#define COMMON 3
// The end of time, and the limit of most runs.
#ifndef LIMIT
#define LIMIT 3
#endif
#define LEVELS 2
#define BIT(level) (1 << (level))

#include "steps.h"

byte now;

// The runs, the innermost at `level`; 0 is outside.
byte level;
byte step[LEVELS + 1];
byte mode[LEVELS + 1];
byte limit[LEVELS + 1];
byte number[LEVELS + 1];                // The number of the activation.
byte clock[LEVELS + 1];                 // The reading of the pass.
bool poll[LEVELS + 1];
bool stopped[LEVELS + 1];
bool once[LEVELS + 1];                  // Stopped before it began: it makes one pass.
bool handled[LEVELS + 1];               // A custom source, in this pass.
bool worked[LEVELS + 1];                // Anything, in this pass.
bool inHandler[LEVELS + 1];
byte firing[LEVELS + 1];                // The timer whose handler that is, and one more.
bool true_stopped[LEVELS + 1];
byte true_fired[LEVELS + 1];            // The timers that have fired in this pass, as bits.
byte numbers;

// Timer 0 repeats every two ticks in the common modes, timer 1 fires once in the default mode.
#define PERIOD 2
byte deadline[2];
bool armed[2];
byte young[2];                          // The levels whose passes took their mark before it was armed, as bits.
byte true_young[2];

// Blocks 0 and 1 are posted by another thread, in this order, 2 and 3 by handlers; even ones for the default mode, odd ones
// for the common modes.
#define UNPOSTED 0
#define MAILED 1
#define QUEUED 2
#define DONE 3
#define TAKEN 4                         // And the level whose turn has it.
#define MODES(block) ((block) % 2 -> COMMON : DEFAULT)
byte block[4];
byte true_new[4];                       // The levels whose turns began before it was posted, as bits.

bool mail;                              // The word of the mailbox, which Mailbox.pml has.
byte stopMail;                          // The number of the run that another thread stops, and one more.
bool signalled, readable, ready;        // The custom source and the descriptor, both in the default mode, both for once.
bool sourceIsLeft = true, descriptorIsLeft = true;

// What handlers may still do.
#ifndef ACTS
#define ACTS 2
#endif
byte acts = ACTS;                       // Together.
byte posts = 2, arms = 2, runs = 2, stops = 1, signals = 1, works = 2;

// MARK: Guards

#define in(timer) (timer == 0 || mode[level] == DEFAULT)
#define maySee(block_, wanted) (block[block_] == wanted && (MODES(block_) & mode[level]))
#define hasQueued (maySee(0, QUEUED) || maySee(1, QUEUED) || maySee(2, QUEUED) || maySee(3, QUEUED))
#define isTaken(b) (block[b] == TAKEN + level)
#ifdef FAULT_NO_TURNS                   // Blocks that are posted in a step run in it.
#define mayRun(b) (isTaken(b) || maySee(b, QUEUED))
#else
#define mayRun(b) isTaken(b)
#endif
#define guard_queued (mayRun(0) || mayRun(1) || mayRun(2) || mayRun(3))
#define guard_drained (!guard_queued)

#define isCalled(timer) (firing[1] == timer + 1 || firing[2] == timer + 1)
#ifdef FAULT_ANY_MODE                   // A timer of the default mode fires while the user drags.
#define fits(timer) true
#else
#define fits(timer) in(timer)
#endif
#ifdef FAULT_NO_MARK                    // A timer that is armed in this pass fires in this pass.
#define isOld(timer) true
#else
#define isOld(timer) (!(young[timer] & BIT(level)))
#endif
#ifdef FAULT_CLOCK_AGAIN                // The clock is read for each timer.
#define thisTime now
#else
#define thisTime clock[level]
#endif
#define isDue(timer) (armed[timer] && !isCalled(timer) && fits(timer) && isOld(timer) && deadline[timer] <= thisTime)
#define guard_due (isDue(0) || isDue(1))
#define guard_fired (!guard_due)

#define guard_signalled (signalled && mode[level] == DEFAULT)
#define guard_quiet (!guard_signalled)
#define guard_found (ready && mode[level] == DEFAULT)
#define guard_unready (!guard_found)

// The timer that is being called has no deadline; it keeps the mode alive.
#define waitsFor(timer) (armed[timer] && !isCalled(timer) && in(timer))
#define isPast(timer) (waitsFor(timer) && deadline[timer] <= now)
#define keepsAlive (armed[0] || (mode[level] == DEFAULT && (armed[1] || sourceIsLeft || descriptorIsLeft)))
#define isEmpty (!keepsAlive && !hasQueued)
#define hasRest (!isEmpty && !stopped[level] && !ready && !mail && !hasQueued && !isPast(0) && !isPast(1) && now < limit[level])
#define guard_sleepy (!poll[level] && !handled[level] && maySleep)
#define guard_busy (!guard_sleepy)
#ifdef FAULT_STALE_DATE                 // The observers that hear of the sleep may have changed until when it may last.
#define maySleep (step[level] == at_falling -> !mail : hasRest)
#else
#define maySleep hasRest
#endif

#define guard_stopped stopped[level]
#define guard_going (!guard_stopped)
#define hasReached (now > limit[level] || (clock[level] >= limit[level] && !worked[level]))
#define guard_over (poll[level] || hasReached || stopped[level] || (isEmpty && !mail))
#define guard_goesOn (!guard_over)

// MARK: Events

inline call() { inHandler[level] = true }

inline event_begins() {
    if
    :: level > 0 -> runs--; acts--
    :: else
    fi;
    level++;
    step[level] = at_beginning;
    numbers++;
    number[level] = numbers;
    true_stopped[level] = false;
    // The outermost run is in the default mode.
    if
    :: mode[level] = DEFAULT
    :: level > 1 -> mode[level] = TRACKING
    fi;
    if
    :: poll[level] = false; limit[level] = LIMIT
    :: level > 1 -> poll[level] = true; limit[level] = now
    :: level > 1 && now + 1 < LIMIT -> poll[level] = false; limit[level] = now + 1
    fi
}

// Its observers may stop the run.
inline event_entry() {
    if
    :: acts > 0 && stops > 0 -> acts--; stops--; stopped[level] = true; true_stopped[level] = true
    :: skip
    fi
}


inline event_beforeTimers() {
    stopped[level] = stopped[level] || once[level];
    handled[level] = false;
    worked[level] = false
}

inline event_beforeSources() { skip }
inline event_beforeWaiting() { call() }
inline event_afterWaiting() { skip }
inline event_exit() { skip }

inline take(b) {
    if
    :: block[b] == MAILED -> block[b] = QUEUED
    :: else
    fi
}

#ifdef FAULT_STOP_INNERMOST            // A stop hits the run that is the innermost when the mail is taken.
#define isStopOfOuter false
#else
#define isStopOfOuter (level == 2 && number[1] + 1 == stopMail)
#endif

inline takeMail() {
    mail = false;
    take(0);
    take(1);
    if
    :: stopMail == 0
    :: stopMail > 0 ->
        if
        :: level == 2 && number[1] + 1 == stopMail -> true_stopped[1] = true
        :: else -> true_stopped[level] = true
        fi;
        if
        :: isStopOfOuter -> stopped[1] = true
        :: else -> stopped[level] = true
        fi;
        stopMail = 0
    fi
}

inline event_mail() {
    takeMail();
    // After a stop that came before it, a run makes one pass.
    if
    :: step[level] == at_beginning -> once[level] = stopped[level]; stopped[level] = false
    :: else
    fi
}

inline takeTurn(b) {
    true_new[b] = true_new[b] & ~BIT(level);
    if
    :: maySee(b, QUEUED) -> block[b] = TAKEN + level
    :: else
    fi
}

inline event_turn() { takeTurn(0); takeTurn(1); takeTurn(2); takeTurn(3) }

inline run_block(b) {
    assert(MODES(b) & mode[level]);
    assert(!(true_new[b] & BIT(level)));
    // Those of one poster in their order.
    assert(b % 2 == 0 || block[b - 1] != TAKEN + level && !maySee(b - 1, QUEUED) && !maySee(b - 1, MAILED));
    block[b] = DONE;
    true_new[b] = 0;
    worked[level] = true;
    call()
}

inline event_block() {
    if
    :: mayRun(0) -> run_block(0)
    :: mayRun(1) && !mayRun(0) -> run_block(1)
    :: mayRun(2) -> run_block(2)
    :: mayRun(3) && !mayRun(2) -> run_block(3)
    fi
}

inline event_source() {
    assert(mode[level] == DEFAULT);
    signalled = false;
    sourceIsLeft = false;
    handled[level] = true;
    worked[level] = true;
    call()
}

inline event_looks() { ready = ready || (readable && mode[level] == DEFAULT) }

#define least(a, b) ((a) < (b) -> (a) : (b))
#define dateOf(timer) (waitsFor(timer) -> deadline[timer] : 255)

#define wakeTime least(limit[level], least(dateOf(0), dateOf(1)))

inline event_sleeps() {
    // Nothing may be left to do.
    assert(!mail && !stopped[level] && !true_stopped[level] && !hasQueued && !isPast(0) && !isPast(1));
    // Until the date, or until mail comes, which it will find, or a descriptor.
    if
    :: skip
    :: now = wakeTime
    fi;
    event_looks()
}

inline event_clock() {
    clock[level] = now;
    true_fired[level] = 0;
#ifdef FAULT_ONE_MARK                   // The mark of a nested pass is that of the pass around it.
    young[0] = 0;
    young[1] = 0;
#else
    young[0] = young[0] & ~BIT(level);
    young[1] = young[1] & ~BIT(level);
#endif
    true_young[0] = true_young[0] & ~BIT(level);
    true_young[1] = true_young[1] & ~BIT(level)
}

inline arm(timer, date) {
    armed[timer] = true;
    deadline[timer] = date;
    young[timer] = BIT(1) | BIT(2);
    true_young[timer] = BIT(1) | BIT(2)
}

inline fire(timer) {
    assert(in(timer));
    assert(deadline[timer] <= clock[level]);
    assert(!(true_young[timer] & BIT(level)));
    assert(!(true_fired[level] & BIT(timer)));
    true_fired[level] = true_fired[level] | BIT(timer);
    worked[level] = true;
    firing[level] = timer + 1;
    call()
}

inline event_timer() {
    if
    :: isDue(0) && (!isDue(1) || deadline[0] <= deadline[1]) ->
        fire(0)
    :: isDue(1) && (!isDue(0) || deadline[1] <= deadline[0]) ->
        fire(1);
        armed[1] = false;
        deadline[1] = 0
    fi
}

inline event_descriptor() {
    assert(mode[level] == DEFAULT);
    ready = false;
    readable = false;
    descriptorIsLeft = false;
    handled[level] = true;
    worked[level] = true;
    call()
}

// A run that was stopped makes no other pass.
inline event_ends() {
    true_stopped[level] = false;
    stopped[level] = false;
    once[level] = false;
    step[level] = 0;
    mode[level] = 0;
    limit[level] = 0;
    number[level] = 0;
    clock[level] = 0;
    poll[level] = false;
    handled[level] = false;
    worked[level] = false;
    true_fired[level] = 0;
    level--
}

inline next(there) {
    assert(there != at_announcing || step[level] != at_deciding || !true_stopped[level]);
    step[level] = there
}

#define here(there) (level > 0 && !inHandler[level] && step[level] == there)
#define here_handler (level > 0 && level < LEVELS && inHandler[level] && runs > 0 && acts > 0)
#define here_outside (level == 0 && numbers == 0)

// MARK: Processes

// What the handler that is under way does.
#define mayArm (arms > 0 && firing[level] != 2)
#define mayPut (firing[level] == 1 && armed[0])
#define mayAct (inHandler[level] && acts > 0 && \
    (works > 0 || posts > 0 || mayArm || stops > 0 || signals > 0 && sourceIsLeft || mayPut))

inline act() {
    acts--;
    if
    :: works > 0 -> works--; now++
    :: works > 0 -> works--; now = now + 2
    :: posts > 0 ->
        block[4 - posts] = QUEUED;
        true_new[4 - posts] = BIT(1) | BIT(2);
        posts--
    :: mayArm -> arms--; arm(1, now)
    :: mayArm -> arms--; arm(1, now + 1)
    :: stops > 0 -> stops--; stopped[level] = true; true_stopped[level] = true
    :: signals > 0 && sourceIsLeft -> signals--; signalled = true
    :: mayPut -> armed[0] = false
    fi
}

#ifdef FAULT_MISSED_PERIODS             // Each missed period fires.
#define periods 1
#else
#define periods ((now - deadline[0]) / PERIOD + 1)
#endif

inline return_() {
    if
    :: firing[level] == 1 && armed[0] ->
        arm(0, deadline[0] + PERIOD * periods);
        // It has fired once for all periods that were missed.
        assert(deadline[0] > now)
    :: else
    fi;
    firing[level] = 0;
    inHandler[level] = false
}

active proctype Loop() {
    d_step { arm(0, 1); arm(1, 1) }
    do
    :: atomic { level > 0 || numbers == 0 ->
        do
#include "rows.h"
        :: mayAct -> act(); break
        :: inHandler[level] -> return_()
        od }
    :: level == 0 && numbers > 0 -> break
    od
}

inline post(b) {
    block[b] = MAILED;
    true_new[b] = BIT(1) | BIT(2);
    mail = true
}

#ifndef ALONE
active proctype Thread() {
    atomic { post(0) };
    if
    :: atomic { stopMail = number[level] + 1; mail = true }
    :: skip
    fi;
    atomic { post(1) }
}

active proctype Peer() { readable = true }
#endif
