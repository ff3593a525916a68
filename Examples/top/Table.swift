/// Rows under headings, in columns as wide as needed. The width of the last column is unlimited.
struct Table {
    struct Column {
        let heading: String
        let isNumber: Bool

        static func number(_ heading: String) -> Column { Column(heading: heading, isNumber: true) }
        static func text(_ heading: String) -> Column { Column(heading: heading, isNumber: false) }
    }

    let columns: [Column]
    var rows: [[String]] = []

    /// The headings, and the rows.
    var lines: (heading: String, rows: [String]) {
        let rows = rows.map { $0.map(printable) }
        let widths = columns.indices.map { index in
            rows.reduce(columns[index].heading.count) { max($0, $1[index].count) }
        }
        func line(_ cells: [String]) -> String {
            var text = ""
            for (index, cell) in cells.enumerated() {
                let space = String(repeating: " ", count: widths[index] - cell.count)
                let isLast = index == cells.count - 1
                text += columns[index].isNumber ? space + cell : isLast ? cell : cell + space
                if !isLast { text += "  " }
            }
            return text
        }
        return (line(columns.map(\.heading)), rows.map(line))
    }
}
