import PollDriver

@testable import TTLStore

// TTLStore as it is, on loops that wait with poll.
try PollWorld.begin()
TTLStore.main()
