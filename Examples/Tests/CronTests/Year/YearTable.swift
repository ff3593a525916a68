/// The table of a year: jobs that stay, and some that are added, changed and removed.
struct YearTable {
    /// The number of changes of the table.
    private var changes = 0
    private var hasWeekly = true
    private var isMoved = false
    private var isLong = false

    private static let base = """
        hourly    17 * 24-30 3,10 *    missed=each limit=10m             work 1 300
        noon      every 1d             limit=1h                          work 60 1800
        gap       30 2 * * *                                             work 10 600
        gaps      */20 2 * 3,10 *      missed=each                       work 10 600
        night     15 3 * * *           missed=skip                       work 10 60
        overruns  0 5 * * sun          limit=30m                         work 600 7200
        stubborn  0 6 * * mon,thu      limit=20m                         stubborn 600 3600
        overlaps  30 */8 * * fri,sat                                     work 3600 60000
        newyork   30 1 * * sun,tue     missed=each zone=America/New_York work 10 60
        lastdays  0 12 31 * *                                            work 10 60
        burst1    0 7 * * tue                                            work 60 900
        burst2    0 7 * * tue          missed=each                       work 60 900
        burst3    0 7 * * tue                                            work 60 900
        burst4    0 7 * * tue          missed=skip                       work 60 900
        burst5    0 7 * * tue          limit=5m                          stubborn 60 900
        asks      0 9 * * tue,fri                                        ask

        """

    var text: String {
        var text = Self.base
        if hasWeekly { text += "weekly @weekly missed=each work 10 3600\n" }
        text += "moves \(isMoved ? "10 16" : "10 4") * * sat,sun limit=\(isLong ? 20 : 10)m work 10 1200\n"
        if changes > 0 {
            text += "extra\(changes) \(changes % 2 == 0 ? "every 11h missed=each" : "*/30 8 * * tue,thu") work 1 60\n"
        }
        return text
    }

    mutating func change(using random: inout any RandomNumberGenerator) {
        changes += 1
        if Bool.random(using: &random) { hasWeekly.toggle() }
        if Bool.random(using: &random) { isMoved.toggle() }
        isLong.toggle()
    }
}
