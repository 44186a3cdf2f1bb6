/// A chart of numbers: an SVG, and a table with the same numbers for readers who do not see the SVG.
///
/// The SVG contains no script, no `style` and no link. The pages' content security policy forbids inline scripts and
/// styles. The colours come from the classes of `style.css`.
package struct Chart: Sendable {
    /// The identifier, unique on its page. The identifiers of the chart's parts begin with it.
    let id: String
    let title: String
    /// A description of the picture in one or two sentences, which screen readers read.
    let summary: String
    /// The height in units of the drawing, like ``width``.
    let height: Int
    /// The drawing itself. Empty if there is nothing to draw.
    let drawing: String
    let legend: [LegendEntry]
    /// A note below the picture, such as the units, the time zone, and the part of an axis that is left out.
    var note = ""
    let table: ChartTable

    /// The width of every drawing in its own units. The page scales the drawing to the screen.
    static let width = 640

    /// The picture alone, with its title and its summary for screen readers.
    package var svg: String {
        """
        <svg class="chart" viewBox="0 0 \(Self.width) \(height)" role="img" aria-labelledby="\(id)-t \(id)-d">\
        <title id="\(id)-t">\(title.escapedHTML)</title><desc id="\(id)-d">\(summary.escapedHTML)</desc>\
        \(drawing)</svg>
        """
    }

    /// The picture with its legend, for pages that already show its numbers as a table.
    package var picture: String {
        let legend = legend.map { "<li><i class=\"key \($0.style)\"></i>\($0.name.escapedHTML)</li>" }.joined()
        return (legend.isEmpty ? "" : "<ul class=\"legend\">\(legend)</ul>\n")
            + (drawing.isEmpty ? "<p class=\"none\">\(summary.escapedHTML)</p>" : svg)
    }

    /// The chart with its title, legend, note and table.
    package var html: String {
        let parts = [
            "<figure id=\"\(id)\"><figcaption>\(title.escapedHTML)</figcaption>",
            picture,
            note.isEmpty ? "" : "<p class=\"note\">\(note.escapedHTML)</p>",
            table.rows.isEmpty
                ? "" : "<details><summary>Show as a table</summary>\(table.html(named: title))</details>",
            "</figure>",
        ]
        return parts.joined(separator: "\n")
    }
}

/// The meaning of a colour. Names and order repeat this meaning, so that a reader does not depend on colours.
struct LegendEntry: Sendable {
    /// The class in `style.css`.
    let style: String
    let name: String
}

/// The table of a chart: columns of names and numbers.
struct ChartTable: Sendable {
    let columns: [String]
    /// The rows. The first value of each row is its name.
    let rows: [[String]]

    /// Returns the table in a box that scrolls separately. Rows and cells have no end tags, which HTML allows, because
    /// a long run has 360 rows.
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

/// Returns a coordinate or a size with one decimal, which is omitted if it is zero.
func unit(_ value: Double) -> String {
    guard value.isFinite else { return "0" }
    let tenths = Int((min(max(value, -1e6), 1e6) * 10).rounded())
    let (whole, rest) = (abs(tenths) / 10, abs(tenths) % 10)
    return (tenths < 0 ? "-" : "") + (rest == 0 ? "\(whole)" : "\(whole).\(rest)")
}
