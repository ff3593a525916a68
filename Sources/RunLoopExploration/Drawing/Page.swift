@_spi(Ports) internal import RunLoopSimulation

/// Runs side by side as an HTML document, well-formed also as XML, with its style and its script in it.
struct Page {
    /// The first line of the fault, and the others.
    private let heading: (line: String, rest: String)
    private let token: ScheduleToken
    private let cause: Exploration.Cause?
    private let drawing: Drawing
    private let titles: [String]

    init(_ finding: Exploration.Finding) {
        self.init(
            [finding.run] + (finding.passingRun.map { [$0] } ?? []), finding.fault.description, cause: finding.cause,
            titles: ["the run that fails", "the same without the last departure, which passes"])
    }

    init(_ trace: SimulationTrace) {
        self.init(
            [trace], trace.fault?.description ?? "A run of a simulation",
            titles: [trace.fault == nil ? "the run" : "the run that fails"])
    }

    private init(_ runs: [SimulationTrace], _ heading: String, cause: Exploration.Cause? = nil, titles: [String]) {
        let lines = heading.split(separator: "\n", omittingEmptySubsequences: false)
        self.heading = (String(lines[0]), lines.dropFirst().joined(separator: "\n"))
        (token, self.cause) = (runs[0].token, cause)
        let entries = runs.map { $0.trace.entries.suffix(Self.mostEntries) }
        let rows = entries.map { Trace.rows(of: $0) }
        let pairs =
            rows.count == 2 ? Alignment.pairs(of: rows[0].rows, rows[1].rows) : rows[0].rows.indices.map { [$0] }
        // The choices of left-out entries are not counted.
        let isCut = runs[0].trace.entries.count > Self.mostEntries
        drawing = Drawing(
            rows, entries.map { $0.compactMap(\.choice) }, pairs, step: isCut ? nil : cause?.step?.number)
        self.titles = [titles[0] + (runs[0].endsProcess ? ", until its process ended" : "")] + titles.dropFirst()
    }

    /// The largest number of events and choices of a run that a browser still draws at once.
    private static let mostEntries = 50_000

    var text: String {
        let (width, height) = drawing.size
        return """
            <!DOCTYPE html>
            <html lang="en" xmlns="http://www.w3.org/1999/xhtml">
            <head>
            <meta charset="utf-8"/>
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"/>
            <title>\(heading.line.markup)</title>
            <style>
            \(Drawing.style)
            \(Self.style)
            </style>
            </head>
            <body>
            <header>
            <h1>\(heading.line.markup)</h1>
            \(heading.rest.isEmpty ? "" : "<pre>\(heading.rest.markup)</pre>")
            <p>Token: <code>\("\(token)".markup)</code></p>
            \(curve)
            <p id="bar">
            <button id="back" title="Arrow up">step back</button>
            <button id="forward" title="Arrow down">step forward</button>
            <button id="departure" title="d">next departure</button>
            <button id="cause" title="c">cause</button>
            <button id="smaller" title="-">−</button>
            <button id="larger" title="+">+</button>
            <input id="search" type="search" placeholder="search"/>
            <output id="count"></output>
            </p>
            <pre id="details"></pre>
            </header>
            <main>
            <svg id="picture" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" width="\(width)" height="\(height)">
            \(drawing.elements(titles: titles))
            </svg>
            </main>
            <script>
            \(Self.script)
            </script>
            </body>
            </html>

            """
    }

    private var curve: String {
        guard let cause else { return "" }
        let (elements, height) = Drawing.curve(cause, below: 0)
        return """
            <details open="open"><summary>\(cause.description.markup)</summary>
            <svg xmlns="http://www.w3.org/2000/svg" width="500" height="\(height)">\(elements)</svg></details>
            """
    }

    private static let style = """
        body { font: 14px system-ui, sans-serif; margin: 0; }
        header { position: sticky; top: 0; background: #fff; padding: 8px 16px; border-bottom: 1px solid #ccc; }
        h1 { font-size: 16px; margin: 0; white-space: pre-wrap; }
        p { margin: 6px 0; }
        code { overflow-wrap: anywhere; }
        pre { margin: 0; max-height: 9em; overflow: auto; }
        #details { min-height: 3em; }
        .row.found rect { fill: #2e8b2e; fill-opacity: 0.2; }
        .row.selected rect { fill: #2563a8; fill-opacity: 0.3; }
        """

    /// The script, without `<` and `&`, so that it reads the same in HTML and XML.
    private static let script = """
        "use strict";
        const element = (name) => document.getElementById(name);
        const rows = Array.from(document.querySelectorAll(".row"));
        const picture = element("picture");
        const size = [picture.getAttribute("width"), picture.getAttribute("height")].map(Number);
        let selected = -1, zoom = 1, found = [];
        function select(index) {
          if (rows[index] === undefined) return;
          if (rows[selected] !== undefined) rows[selected].classList.remove("selected");
          selected = index;
          rows[index].classList.add("selected");
          rows[index].scrollIntoView({ block: "center" });
          element("details").textContent = rows[index].querySelector("title").textContent;
        }
        function selectNext(candidates) {
          const next = candidates.find((index) => index > selected);
          select(next === undefined ? candidates[0] : next);
        }
        function withClass(name) {
          return Array.from(rows.keys()).filter((index) => rows[index].classList.contains(name));
        }
        function scale(factor) {
          zoom = Math.min(8, Math.max(0.125, zoom * factor));
          picture.setAttribute("width", size[0] * zoom);
          picture.setAttribute("height", size[1] * zoom);
        }
        function search() {
          const text = element("search").value.toLowerCase();
          found = [];
          rows.forEach((row, index) => {
            const isFound = text === "" ? false : row.textContent.toLowerCase().includes(text);
            row.classList.toggle("found", isFound);
            if (isFound) found.push(index);
          });
          element("count").textContent = text === "" ? "" : found.length + " found";
        }
        const actions = {
          back: () => select(selected - 1),
          forward: () => select(selected + 1),
          departure: () => selectNext(withClass("departure")),
          cause: () => selectNext(withClass("cause")),
          smaller: () => scale(0.8),
          larger: () => scale(1.25),
        };
        Object.keys(actions).forEach((name) => element(name).addEventListener("click", actions[name]));
        rows.forEach((row, index) => row.addEventListener("click", () => select(index)));
        element("search").addEventListener("input", search);
        const keys = {
          ArrowUp: "back", ArrowDown: "forward", d: "departure", c: "cause", "-": "smaller", "+": "larger",
        };
        document.addEventListener("keydown", (event) => {
          if (event.target === element("search")) {
            if (event.key === "Enter") selectNext(found);
            return;
          }
          if (event.ctrlKey || event.metaKey || event.altKey) return;
          if (keys[event.key] === undefined) return;
          event.preventDefault();
          actions[keys[event.key]]();
        });
        """
}
