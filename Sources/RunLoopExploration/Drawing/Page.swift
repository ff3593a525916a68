internal import RunLoopSimulation

/// A finding as an HTML document: well-formed also as XML, with its style and its script in it.
struct Page {
    private let finding: Exploration.Finding
    private let drawing: Drawing
    private let titles: [String]

    init(_ finding: Exploration.Finding) {
        self.finding = finding
        let runs = [finding.failing, finding.passing].compactMap {
            $0.map { Rows($0.entries.suffix(Self.mostEntries)) }
        }
        let pairs =
            runs.count == 2 ? Alignment.pairs(of: runs[0].rows, runs[1].rows) : runs[0].rows.indices.map { [$0] }
        // The choices of the entries that are left out are not counted.
        let isCut = finding.failing.entries.count > Self.mostEntries
        drawing = Drawing(runs, pairs, step: isCut ? nil : finding.cause?.step?.number)
        let end = finding.endsProcess ? ", until its process ended" : ""
        titles = ["the run that fails" + end, "the same without the last departure, which passes"]
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
            <title>\(fault.line.markup)</title>
            <style>
            \(Drawing.style)
            \(Self.style)
            </style>
            </head>
            <body>
            <header>
            <h1>\(fault.line.markup)</h1>
            \(fault.rest.isEmpty ? "" : "<pre>\(fault.rest.markup)</pre>")
            <p>Token: <code>\("\(finding.token)".markup)</code></p>
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

    /// The first line of the fault, and the others.
    private var fault: (line: String, rest: String) {
        let lines = finding.fault.description.split(separator: "\n", omittingEmptySubsequences: false)
        return (String(lines[0]), lines.dropFirst().joined(separator: "\n"))
    }

    private var curve: String {
        guard let cause = finding.cause else { return "" }
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

    /// It has no `<` and no `&`, so that it reads the same in HTML and XML.
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
