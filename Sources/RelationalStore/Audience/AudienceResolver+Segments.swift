package import Model
package import Store

extension AudienceResolver {
    /// Looks segments up in the transaction of `db`.
    ///
    /// - Parameter defined: what a segment is about to be, whatever it is on record.
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
