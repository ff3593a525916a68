import Testing

@testable import Scenarios

@Suite("An event as JSON and in words")
struct ScenarioEventTests {
    @Test("each event is one line with its keys in order", arguments: Printed.lines)
    func lines(event: ScenarioEvent, line: String) {
        #expect(event.json == line)
    }

    @Test("quotes, backslashes and control characters in names are escaped, other characters are not")
    func escapes() {
        let event = ScenarioEvent(t: 0, .invalidated(name: "a\"b\\c\n\r\t\u{1}\u{1F}é😀/"))
        #expect(event.json == #"{"t":0.0,"event":"invalidated","name":"a\"b\\c\n\r\t\u0001\u001fé😀/"}"#)
    }

    @Test("each event in words", arguments: Printed.words)
    func words(event: ScenarioEvent, words: String) {
        #expect(event.words == words)
    }
}

/// Events, and their printed forms.
private enum Printed {
    private static let action = ScenarioEvent.Kind.action(
        name: "N", count: 1, mode: nil, action: "the \"second\"", isFree: true)

    static let lines: [(ScenarioEvent, String)] = [
        (
            OneThread.fire("T", 2_000_000_000, count: 1),
            #"{"t":2.0,"event":"fire","name":"T","count":1,"mode":"default","due":2.0,"missed":0}"#
        ),
        (
            OneThread.fire("T", 9_596_000_000, due: 6_000_000_000, count: 3, mode: "a\"b", missed: 1, manual: true),
            #"{"t":9.596,"event":"fire","name":"T","count":3,"mode":"a\"b","due":6.0,"missed":1,"manual":true}"#
        ),
        (
            ScenarioEvent(t: 1, .fire(name: "T", count: 1, mode: "m", due: 1, missed: 0, manual: true), thread: "w"),
            #"{"t":0.000000001,"event":"fire","name":"T","count":1,"mode":"m","due":0.000000001,"missed":0,"#
                + #""manual":true,"thread":"w"}"#
        ),
        (ScenarioEvent(t: 0, .invalidated(name: "T")), #"{"t":0.0,"event":"invalidated","name":"T"}"#),
        (ScenarioEvent(t: 0, .deinit(name: "o")), #"{"t":0.0,"event":"deinit","name":"o"}"#),
        (ScenarioEvent(t: 0, .runBegin(mode: "m")), #"{"t":0.0,"event":"runBegin","mode":"m"}"#),
        (ScenarioEvent(t: 0, .runEnd(mode: "m")), #"{"t":0.0,"event":"runEnd","mode":"m"}"#),
        (ScenarioEvent(t: 0, .busyBegin), #"{"t":0.0,"event":"busyBegin"}"#),
        (ScenarioEvent(t: 0, .busyEnd, thread: "w"), #"{"t":0.0,"event":"busyEnd","thread":"w"}"#),
        (ScenarioEvent(t: 0, .end), #"{"t":0.0,"event":"end"}"#),
        (
            Threads.delivery("S", 6 * Threads.second, due: 4 * Threads.second, count: 2, data: 2),
            #"{"t":6.0,"event":"fire","name":"S","count":2,"mode":"default","due":4.0,"data":2,"thread":"main"}"#
        ),
        (
            Threads.delivery("B", 1, due: 1, count: 1, mode: nil, on: "background-1"),
            #"{"t":0.000000001,"event":"fire","name":"B","count":1,"due":0.000000001,"data":1,"#
                + #""thread":"background-1"}"#
        ),
        (
            ScenarioEvent(
                t: 100_000_001, .frame(name: "L", count: 3, mode: "m", timestamp: 100_000_000, dropped: 2),
                thread: "main"),
            #"{"t":0.100000001,"event":"fire","name":"L","count":3,"mode":"m","timestamp":0.1,"dropped":2,"#
                + #""thread":"main"}"#
        ),
        (
            ScenarioEvent(t: 3 * Threads.second, action, thread: "background-1"),
            #"{"t":3.0,"event":"fire","name":"N","count":1,"action":"the \"second\"","free":true,"#
                + #""thread":"background-1"}"#
        ),
        (
            ScenarioEvent(
                t: 0, .action(name: "N", count: 2, mode: "default", action: "N", isFree: false), thread: "main"),
            #"{"t":0.0,"event":"fire","name":"N","count":2,"mode":"default","action":"N","thread":"main"}"#
        ),
        (
            ScenarioEvent(
                t: Threads.second, .tick(name: "C", count: 2, mode: "default", remaining: 59), thread: "main"),
            #"{"t":1.0,"event":"fire","name":"C","count":2,"mode":"default","remaining":59,"thread":"main"}"#
        ),
        (
            ScenarioEvent(
                t: Threads.second, .tick(name: "C", count: 2, mode: "default", remaining: nil), thread: "main"),
            #"{"t":1.0,"event":"fire","name":"C","count":2,"mode":"default","thread":"main"}"#
        ),
        (
            ScenarioEvent(t: 1_016_666_666, .reading(name: "L", text: "60 FPS"), thread: "main"),
            #"{"t":1.016666666,"event":"reading","name":"L","text":"60 FPS","thread":"main"}"#
        ),
        (
            ScenarioEvent(t: 0, .cancelled(name: "S"), thread: "background-2"),
            #"{"t":0.0,"event":"cancelled","name":"S","thread":"background-2"}"#
        ),
        (ScenarioEvent(t: 0, .end, thread: "main"), #"{"t":0.0,"event":"end","thread":"main"}"#),
    ]

    static let words: [(ScenarioEvent, String)] = [
        (Threads.events[0], "S fires (1)"), (Threads.events[1], "B fires (1) in the background"),
        (Threads.events[5], "B is cancelled in the background"), (Threads.events[7], "S fires (2), due +4.0, data 2"),
        (Threads.events[8], "L is called (2), 101 dropped"), (Threads.events[9], "L shows 2 FPS"),
        (Threads.events[10], "C ticks (1), 3 left"),
        (
            ScenarioEvent(t: 0, action, thread: "background-1"),
            #"N acts in the background: the \"second\"; the name is free"#
        ),
        (ScenarioEvent(t: 0, action, thread: "main"), #"N acts: the \"second\"; the name is free"#),
    ]
}
