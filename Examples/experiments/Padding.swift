extension String {
    func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - count))
    }

    func leading(_ width: Int) -> String {
        String(repeating: " ", count: max(0, width - count)) + self
    }

    /// The text without the spaces at its end.
    var trimmed: String {
        var text = self
        while text.last == " " { text.removeLast() }
        return text
    }
}
