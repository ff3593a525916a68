import Glibc

/// The number of operations of a test: the value of the environment variable, or the usual one.
package func amount(of variable: String, usually usual: Int) -> Int {
    getenv(variable).flatMap { Int(String(cString: $0)) } ?? usual
}
