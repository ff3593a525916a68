import Glibc

/// Returns the seeds of a random test: as many as the environment variable SEEDS says, or the usual number.
package func seeds(usually usual: Int) -> ClosedRange<UInt64> { 1...UInt64(amount(of: "SEEDS", usually: usual)) }

/// Returns the number of operations of a test: the value of the environment variable, or the usual one.
package func amount(of variable: String, usually usual: Int) -> Int {
    getenv(variable).flatMap { Int(String(cString: $0)) } ?? usual
}
