import Foundation

/// Wall and CPU time of this process from a moment on.
struct Stopwatch {
    private let start = ContinuousClock.now
    private let cpuAtStart = Usage.own.cpuSeconds

    var seconds: Double { (ContinuousClock.now - start) / .seconds(1) }
    var cpuSeconds: Double { Usage.own.cpuSeconds - cpuAtStart }
}

struct Usage {
    /// User and system time.
    let cpuSeconds: Double

    static var own: Usage { Usage(RUSAGE_SELF.rawValue) }
    /// Of the processes started and waited for.
    static var children: Usage { Usage(RUSAGE_CHILDREN.rawValue) }

    private init(_ who: Int32) {
        var usage = rusage()
        getrusage(__rusage_who_t(who), &usage)
        cpuSeconds =
            Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }

    /// Most memory resident at once. Not from `getrusage`: that one counts what the process was forked from.
    static var peakMegabytes: Double? { status("VmHWM").map { Double($0) / 1024 } }

    /// What this process holds now.
    struct Resources: CustomStringConvertible {
        var megabytes = 0
        var descriptors = 0
        var threads = 0

        var description: String { "\(megabytes) MB, \(descriptors) descriptors, \(threads) threads" }
    }

    static var resources: Resources {
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return Resources(
            megabytes: (status("VmRSS") ?? 0) / 1024, descriptors: descriptors.count, threads: status("Threads") ?? 0)
    }

    private static func status(_ key: String) -> Int? {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(key + ":") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
    }
}
