import Testing

@testable import Cron
