package import Model

extension RunLog {
    /// Returns a page of the matching runs, newest first.
    ///
    /// - Parameter limit: the maximum number of runs. The page has fewer if the search stops at
    ///   ``RunSearch/readMax``.
    package func search(_ search: RunSearch, at position: ListPosition, limit: Int) async throws -> FoundRuns {
        switch position {
        case .newest: return try await older(search, before: nil, limit: limit)
        case .before(let id):
            var found = try await older(search, before: id, limit: limit)
            found.newer = .after(found.runs.first?.id ?? id - 1)
            return found
        case .after(let id):
            let (runs, stopped, isMore) = try await read(search, limit: limit) { last, limit in
                try await self.runs(search.filter, after: last ?? id, limit: limit)
            }
            // The newest page is a whole one.
            if !isMore { return try await older(search, before: nil, limit: limit) }
            var found = FoundRuns(runs: runs.reversed(), stoppedAt: stopped)
            found.newer = .after(stopped?.id ?? runs.last?.id ?? id)
            found.older = .before(runs.first?.id ?? id + 1)
            return found
        }
    }

    private func older(_ search: RunSearch, before id: Int64?, limit: Int) async throws -> FoundRuns {
        let (runs, stopped, isMore) = try await read(search, limit: limit) { last, limit in
            try await self.runs(search.filter, before: last ?? id, limit: limit)
        }
        var found = FoundRuns(runs: runs, stoppedAt: stopped)
        if isMore { found.older = (stopped?.id ?? runs.last?.id).map(ListPosition.before) }
        return found
    }

    /// Reads runs in slices until there are enough.
    ///
    /// - Returns: the matching runs; the last run read, if the search stopped early; and whether more may follow.
    private func read(
        _ search: RunSearch, limit: Int, _ slice: (_ last: Int64?, _ limit: Int) async throws -> [Run]
    ) async throws -> (runs: [Run], stopped: Run?, isMore: Bool) {
        var (found, count): ([Run], Int) = ([], 0)
        var last: Run?
        while count < RunSearch.readMax || search.isIndexed {
            let wanted =
                search.isIndexed ? limit + 1 : min(RunSearch.sliceMax, RunSearch.readMax - count)
            let runs = try await slice(last?.id, wanted)
            count += runs.count
            for run in runs where search.matches(run) {
                guard found.count < limit else { return (found, nil, true) }
                found.append(run)
            }
            last = runs.last ?? last
            if runs.count < wanted { return (found, nil, false) }
        }
        return (found, last, true)
    }
}
