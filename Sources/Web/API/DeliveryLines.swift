import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The deliveries of a run as CSV. They are read in pages, as fast as the client receives them.
enum DeliveryLines {
    private static let linesPerPage = 1000

    /// Throws before the first line if the run's deliveries were pruned.
    static func response(
        for run: Run, _ cases: UseCases, _ filter: DeliveryFilter = DeliveryFilter()
    ) async throws -> Response {
        let first = try await cases.reports.lines(of: run, filter, after: nil, limit: linesPerPage)
        let body = ResponseBody { writer in
            var page = first
            while true {
                try await writer.write(ByteBuffer(string: page.text))
                guard let next = page.next else { break }
                page = try await cases.reports.lines(of: run, filter, after: next, limit: linesPerPage)
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok,
            headers: [
                .contentType: "text/csv; charset=utf-8", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
                .contentDisposition: "attachment; filename=\"run-\(run.id)-deliveries.csv\"",
            ], body: body)
    }
}
