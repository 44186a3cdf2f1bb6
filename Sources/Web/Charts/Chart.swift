/// A picture of numbers with the numbers beside it: an SVG for the eye, a table for everybody, and both say the same.
///
/// Made on the server from values alone. The SVG holds no script, no `style` and no link, since the pages forbid them:
/// its colours come from the classes of `style.css`.
package struct Chart: Sendable {
    /// Unique on its page; the names of everything inside begin with it.
    let id: String
    let title: String
    /// What the picture shows, in a sentence or two, for people who do not see it.
    let summary: String
    /// In units of the drawing, as ``width``.
    let height: Int
    /// The drawing itself; empty where there is nothing to draw.
    let drawing: String
    let legend: [LegendEntry]
    /// Beneath the picture: units, zone, what an axis leaves out.
    var note = ""
    let table: ChartTable

    /// Every drawing is so many units wide, whatever the screen makes of it.
    static let width = 640

    /// The picture alone; a reader is told its title and its summary.
    package var svg: String {
        """
        <svg class="chart" viewBox="0 0 \(Self.width) \(height)" role="img" aria-labelledby="\(id)-t \(id)-d">\
        <title id="\(id)-t">\(title.escapedHTML)</title><desc id="\(id)-d">\(summary.escapedHTML)</desc>\
        \(drawing)</svg>
        """
    }

    /// The picture with its legend, for a place that has its numbers as a table already.
    package var picture: String {
        let legend = legend.map { "<li><i class=\"key \($0.style)\"></i>\($0.name.escapedHTML)</li>" }.joined()
        return (legend.isEmpty ? "" : "<ul class=\"legend\">\(legend)</ul>\n")
            + (drawing.isEmpty ? "<p class=\"none\">\(summary.escapedHTML)</p>" : svg)
    }

    /// With its title, legend, note and the table behind it.
    package var html: String {
        let parts = [
            "<figure id=\"\(id)\"><figcaption>\(title.escapedHTML)</figcaption>",
            picture,
            note.isEmpty ? "" : "<p class=\"note\">\(note.escapedHTML)</p>",
            table.rows.isEmpty
                ? "" : "<details><summary>The same as a table</summary>\(table.html(named: title))</details>",
            "</figure>",
        ]
        return parts.joined(separator: "\n")
    }
}

/// What a colour of a chart stands for; colour is never alone, the name and the order say the same.
struct LegendEntry: Sendable {
    /// The class in `style.css`.
    let style: String
    let name: String
}

/// Columns of words and numbers behind a chart.
struct ChartTable: Sendable {
    let columns: [String]
    /// The first value of each names it.
    let rows: [[String]]

    /// In a box that scrolls by itself. Ends of rows and cells are left out, as HTML allows: a long run has 360 rows.
    func html(named title: String) -> String {
        let heads = columns.map { "<th scope=col>\($0.escapedHTML)" }.joined()
        let lines = rows.map { row in
            "<tr><th scope=row>\((row.first ?? "").escapedHTML)"
                + row.dropFirst().map { "<td>\($0.escapedHTML)" }.joined()
        }
        return """
            <div class="scroll" tabindex="0" role="region" aria-label="\(title.escapedHTML), as a table">\
            <table><thead><tr>\(heads)<tbody>
            \(lines.joined(separator: "\n"))
            </table></div>
            """
    }
}

/// A coordinate or a size: one decimal, and none where it is zero.
func unit(_ value: Double) -> String {
    guard value.isFinite else { return "0" }
    let tenths = Int((min(max(value, -1e6), 1e6) * 10).rounded())
    let (whole, rest) = (abs(tenths) / 10, abs(tenths) % 10)
    return (tenths < 0 ? "-" : "") + (rest == 0 ? "\(whole)" : "\(whole).\(rest)")
}
