import Glibc

/// How much of something a test does: what the environment asks for, or what is usual.
package func amount(of variable: String, usually usual: Int) -> Int {
    getenv(variable).flatMap { Int(String(cString: $0)) } ?? usual
}
