package import Testing

/// Returns `true` if the standard error of an ended process contains `sentence`. Optimised code traps without a
/// message.
package func says(_ sentence: String, _ result: ExitTest.Result?) -> Bool {
    #if DEBUG
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    if text.contains(sentence) { return true }
    print("the process wrote, without \"\(sentence)\":\n\(text)")
    return false
    #else
    return true
    #endif
}
