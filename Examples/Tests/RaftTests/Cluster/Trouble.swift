import RunLoopHosts
import RunLoopKit

/// The kinds of trouble of a cluster. Their only knowledge of the algorithm is the member that leads.
enum Trouble: CaseIterable {
    case memberCrashes, memberIsStartedAnew, membersStart, leaderCrashes
    case membersAreSplit, leaderIsCutOff, linkIsCut, linksAreMended
    case linkIsSlow, diskIsSlow, clockIsSet
}

extension Cluster {
    /// - Parameter some: the affected members, by its bits if there may be several; at least one.
    func have(_ trouble: Trouble, _ some: Int) {
        let host = hosts[some % hosts.count]
        let other = hosts[(some + 1) % hosts.count]
        let leader = hosts.first { $0.name == check.leader } ?? host
        switch trouble {
        case .memberCrashes: host.crash()
        case .memberIsStartedAnew:
            host.crash()
            host.start()
        case .membersStart: start()
        case .leaderCrashes: leader.crash()
        case .membersAreSplit: cutOff(hosts.indices.filter { some >> $0 & 1 == 1 }.map { hosts[$0] })
        case .leaderIsCutOff: cutOff([leader])
        case .linkIsCut: network.cut(from: host, to: other)
        case .linksAreMended: network.heal()
        case .linkIsSlow:
            var link = network.link
            link.latency = .milliseconds(some * 10)
            network.setLink(link, from: host, to: other)
        case .diskIsSlow: host.disk.slow(.sync, by: .milliseconds(some * 10))
        case .clockIsSet: host.wallTime = host.wallTime + .seconds(some - 16)
        }
    }

    /// Cuts some members off from the others, but not from the clients.
    private func cutOff(_ group: [SimulatedHost]) {
        for host in group {
            for other in hosts where !group.contains(where: { $0 === other }) { network.cut(between: host, and: other) }
        }
    }

    private func start() {
        for host in hosts { host.start() }
    }

    /// Ends all trouble.
    func mend() {
        start()
        network.heal()
        for host in hosts {
            host.disk.slow(.sync, by: .milliseconds(10))
            for other in hosts where other !== host { network.setLink(network.link, from: host, to: other) }
        }
    }
}
