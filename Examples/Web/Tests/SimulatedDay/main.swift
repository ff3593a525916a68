// Prints the trace of a short day: the same bytes for a seed in every process.

let seed = CommandLine.arguments.dropFirst().first.flatMap { UInt64($0) } ?? 0
let day = Day()
for line in day.run(seed: seed, hours: 2, clients: 20, members: 3, traced: true) { print(line) }
for failure in day.failures { print(failure) }
