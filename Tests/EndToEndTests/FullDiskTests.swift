import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A store on a file system that is really full: a small tmpfs, mounted in a name space of its own, so that no rights are
/// needed where the kernel lets users have such name spaces.
@Suite(
    .ownThread, .timeLimit(.minutes(10)),
    .enabled(if: FullDisk.isPossible, "this machine allows no mount of a tmpfs"))
struct `A full disk` {
    @Test func `ends an import with 75, and the store opens and goes on once there is space`() throws {
        let place = try Installation(devices: 12_000)
        let result = try FullDisk.run(
            """
            head -n 1 devices.csv > none.csv; "$FANFARE" devices import none.csv && echo "opened $?"
            "$FANFARE" devices import devices.csv > /dev/null 2> first.txt; echo "first $?"; cat first.txt >&2
            "$FANFARE" verify > /dev/null; echo "verify $?"
            "$FANFARE" devices show > /dev/null; echo "shown $?"
            mount -o remount,size=64m full
            "$FANFARE" devices import devices.csv; echo "second $?"
            "$FANFARE" verify > /dev/null; echo "verify $?"
            """, in: place.folder)
        #expect(result.output.contains("opened 0"), "\(result.errors)")
        #expect(result.output.contains("first 75"), "\(result.output) \(result.errors)")
        #expect(result.errors.contains("no free space for the store"))
        #expect(result.output.contains("shown 0"))
        #expect(result.output.contains("second 0"), "\(result.output) \(result.errors)")
        #expect(result.output.components(separatedBy: "verify 0").count == 3)
    }

    @Test func `is named by a restore as that of the store, not of the backup`() throws {
        let place = try Installation(devices: 12_000)
        try place.importDevices()
        #expect(try place.fanfare("backup", "copy.sqlite").status == 0)
        let result = try FullDisk.run(
            "\"$FANFARE\" restore copy.sqlite --yes > /dev/null; echo \"restored $?\"", in: place.folder)
        #expect(result.output.contains("restored 75"), "\(result.output) \(result.errors)")
        #expect(
            result.errors.contains(/full\/fanfare.sqlite: \d+ kB free in .*full; free disk space there first/),
            "\(result.errors)")
        #expect(!result.errors.contains("copy.sqlite"), "\(result.errors)")
    }

    /// It waits for room as long as it may, here until it has said so; asked every second, for half a minute at most.
    @Test func `during a run costs nobody: it waits, ends with 75 when stopped, and finishes later`() throws {
        let place = try Installation(devices: 3_000)
        let words = ["--yes", "--occurrence", "a"] + Installation.words
        let run = "\"$FANFARE\" run new-podcast " + words.map { "'\($0)'" }.joined(separator: " ")
        let result = try FullDisk.run(
            """
            mount -o remount,size=64m full
            printf 'installation_id\\n' > fans.csv; tail -n +2 devices.csv | cut -d, -f4 >> fans.csv
            "$FANFARE" devices import devices.csv && "$FANFARE" segments import podcast-fans fans.csv || exit 1
            used=$(df --output=used -k full | tail -1); mount -o remount,size=$((used + 256))k full
            timeout --preserve-status 200 \(run) > /dev/null 2> first.txt & run=$!
            looks=0
            until grep -q 'the store accepts no writes' first.txt || [ $looks -ge 30 ]; do
                kill -0 $run || break
                sleep 1; looks=$((looks + 1))
            done
            kill -TERM $run; wait $run; echo "first $?"; cat first.txt >&2
            mount -o remount,size=64m full
            \(run) > /dev/null; echo "second $?"
            "$FANFARE" verify > /dev/null; echo "verify $?"
            "$FANFARE" report new-podcast --check
            """, in: place.folder)
        #expect(result.output.contains("first 75"), "\(result.output) \(result.errors)")
        #expect(result.errors.contains("stopping: nothing more is sent"))
        #expect(result.output.contains("second 0"), "\(result.output) \(result.errors)")
        #expect(result.output.contains("verify 0"))
        #expect(result.output.contains("The counts balance."))
    }
}

/// The stop of a broadcast whose disk is full.
@Suite(
    .ownThread, .timeLimit(.minutes(10)),
    .enabled(if: FullDisk.isPossible, "this machine allows no mount of a tmpfs"))
struct `A stop on a full disk` {
    /// - Parameters:
    ///   - before: done when the disk is full.
    ///   - target: what is stopped.
    ///   - isFinishing: whether the run is sent to its end afterwards.
    private func stop(
        _ target: String, before: String = "true", isFinishing: Bool = false
    ) throws -> (Program.Result, Installation) {
        let place = try Installation.slow()
        let program = try FullDisk.start(
            """
            mount -o remount,size=64m full
            "$FANFARE" devices import devices.csv > /dev/null || exit 1
            timeout --preserve-status 200 "$FANFARE" run slow --occurrence a --yes > run.txt 2>&1 & run=$!
            until "$FANFARE" status slow 2>&1 | grep -q running; do :; done
            used=$(df --output=used -k full | tail -1); mount -o remount,size=$((used + 64))k full
            cat /dev/zero > full/fill 2> /dev/null
            \(before)
            "$FANFARE" stop \(target) --reason 'wrong text'; echo "stop $?"
            cat full/fanfare.sqlite-senders/STOP
            rm full/fill; mount -o remount,size=64m full
            echo over; wait $run; echo "run $?"
            """, in: place.folder)
        try program.wait { program.output.contains("over") }
        if isFinishing { place.simulator.setFaults([]) }
        return (try program.finish(), place)
    }

    @Test(arguments: ["--all", "slow", "slow/a", "1"]) func `is in force, with who and why`(target: String) throws {
        let (result, place) = try stop(target)
        #expect(result.output.contains("stop 0"), "\(result.output) \(result.errors)")
        #expect(result.output.contains("run 76"), "\(result.output) \(result.errors)")
        #expect(result.output.contains("wrong text"), "\(result.output)")
        #expect(place.simulator.counts().accepted < Installation.slowDevices)
    }

    private static let withoutSpare =
        "rm full/fanfare.sqlite-senders/STOP.spare; cat /dev/zero >> full/fill 2> /dev/null"

    @Test func `of everything needs no room at all`() throws {
        let (result, place) = try stop("--all", before: Self.withoutSpare)
        #expect(result.output.contains("stop 0"), "\(result.output) \(result.errors)")
        #expect(result.output.contains("run 76"), "\(result.output) \(result.errors)")
        #expect(place.simulator.counts().accepted < Installation.slowDevices)
    }

    @Test func `that can be written nowhere says that nothing is stopped`() throws {
        let (result, place) = try stop("slow", before: Self.withoutSpare, isFinishing: true)
        #expect(!result.output.contains("stop 0"), "\(result.output) \(result.errors)")
        #expect(
            result.errors.contains("NOTHING IS STOPPED") && result.errors.contains(": touch "), "\(result.errors)")
        #expect(result.output.contains("run 0"), "\(result.output) \(result.errors)")
        #expect(place.simulator.counts().accepted == Installation.slowDevices)
    }
}

/// What a used-up quota does to a sender, without one: the kernel refuses its writes, as it does beyond the size that files
/// may have, and what SQLite says is the same.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A store that cannot be written` {
    /// More than what the sender says takes up, and less than its store.
    private static let fileBytesMax = 64 * 1024

    private func limit(_ run: RunningProgram, in place: Installation, to bytes: String) throws {
        let result = try Program.run(
            ["--pid", "\(run.pid)", "--fsize=\(bytes):"], in: place.folder,
            program: URL(fileURLWithPath: "/usr/bin/prlimit"))
        try #require(result.status == 0, "\(result.errors)")
    }

    @Test func `is waited for in a run, is said to be, and costs nobody: the run goes on by itself`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            // A quota sends no signal.
            let run = try RunningProgram(
                ["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", Program.url.path] + Installation.slowRun, in: place.folder,
                program: URL(fileURLWithPath: "/bin/sh"))
            try run.wait { place.simulator.counts().accepted >= 20 }
            try limit(run, in: place, to: "\(Self.fileBytesMax)")
            var status = ""
            try Patience.wait(for: "\(status)\(run.errors)") {
                status = try place.fanfare("status", "slow").output
                return status.contains("the store's disk is failing, or its quota is used up")
            }
            #expect(place.simulator.counts().accepted < Installation.slowDevices)
            // The progress of a process that follows the run says it, too.
            let follower = try RunningProgram(Installation.slowRun + ["--wait"], in: place.folder)
            try follower.wait { follower.errors.contains("the store's disk is failing, or its quota is used up") }
            try limit(run, in: place, to: "unlimited")
            place.simulator.setFaults([])
            let ended = try run.finish()
            #expect(ended.status == 0, "\(ended.errors)")
            let followed = try follower.finish()
            #expect(followed.status == 0, "\(followed.errors)")
            try place.expectOnceEach()
        }
    }
}

enum FullDisk {
    static let isPossible: Bool = {
        do {
            let folder = try TemporaryDirectory()
            return try run("true", in: folder).status == 0
        } catch {
            return false
        }
    }()

    /// Runs a script in `folder`, with a tmpfs of 1.5 MB mounted at `full`; both end together.
    static func run(_ script: String, in folder: TemporaryDirectory) throws -> Program.Result {
        try start(script, in: folder).finish()
    }

    static func start(_ script: String, in folder: TemporaryDirectory) throws -> RunningProgram {
        try folder.write(
            "cd '\(folder.path)' && export FANFARE_STORE=\"$PWD/full/fanfare.sqlite\" && mkdir -p full && mount -t tmpfs -o size=1536k none full || exit 9\n\(script)",
            to: "full.sh")
        return try RunningProgram(
            ["unshare", "--map-root-user", "--mount", "sh", folder.path + "/full.sh"], in: folder,
            environment: ["FANFARE": Program.url.path], program: URL(fileURLWithPath: "/usr/bin/env"))
    }
}
