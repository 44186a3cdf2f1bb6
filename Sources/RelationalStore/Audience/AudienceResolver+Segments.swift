package import Model
package import Store

extension AudienceResolver {
    /// Creates a resolver that looks segments up in the transaction of `db`.
    ///
    /// - Parameter defined: the new definition of a segment, which replaces the recorded one.
    package init(
        _ db: some SQLSession, now: Timestamp, defining defined: (name: String, expression: AudienceExpression)?
    ) {
        let catalog = SegmentCatalog(db)
        self.init(now: now) { name in
            if let defined, defined.name == name { return SegmentEntry(id: 0, expression: defined.expression) }
            return try catalog.entry(of: name)
        }
    }
}
