// error: conformance of 'DisplayLink' to 'Sendable' is unavailable: a display link belongs to its loop's thread
import RunLoopKit

func share(_ value: some Sendable) {}

func shareLink(link: DisplayLink) {
    share(link)
}
