import Glibc

/// The signals that a thread blocks. A child process inherits them from the thread that starts it.
package enum BlockedSignals {
    /// Runs the body without blocked signals. A shell that blocks SIGCHLD may never notice that its children have
    /// exited.
    package static func without(_ body: () throws -> Void) rethrows {
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try body()
    }
}
