// error: passing closure as a 'sending' parameter risks causing data races
import RunLoopKit

func passElsewhere(limiter: RateLimiter) {
    Task { try await limiter.acquire() }
}
