import TestSupport

/// The steps of a run, from Models/pass.table, from which the model in Promela is made as well.
struct PassTable {
    struct Row: Hashable {
        let step: String
        let event: String
        let condition: String
        let next: String
    }

    var rows: [Row]

    init() {
        let root = #filePath.split(separator: "/").dropLast(5).joined(separator: "/")
        let lines = contents(of: "/\(root)/Models/pass.table").split(separator: "\n").filter { !$0.hasPrefix("#") }
        rows = lines.map { line in
            let words = line.split(separator: " ").map(String.init)
            precondition(words.count == 4, "a row of pass.table has four words: \(line)")
            return Row(step: words[0], event: words[1], condition: words[2], next: words[3])
        }
    }
}
