import APNs
package import Model
import Sending

extension Plan.Header {
    /// What every push of the run would carry beside its token and id, in the order of Apple's documentation.
    package static func all(_ definition: RunDefinition) -> [Plan.Header] {
        let campaign = definition.campaign
        let run = Run(
            id: 0, campaign: campaign.name, occurrence: "", definition: definition, state: .scheduled,
            createdAt: definition.plannedAt)
        let headers = PushHeaders(run)
        var list = [
            Plan.Header(name: "apns-topic", value: headers.topic, meaning: ""),
            Plan.Header(name: "apns-push-type", value: headers.pushType, meaning: ""),
            Plan.Header(name: "apns-priority", value: "\(headers.priority)", meaning: ""),
        ]
        if let expiration = headers.expiration {
            list.append(
                Plan.Header(
                    name: "apns-expiration", value: "\(expiration)",
                    meaning: campaign.expiresAfter.map {
                        $0 == .zero ? "one attempt" : "\(WrittenDuration.text($0)) after the start"
                    } ?? ""))
        }
        if let collapseID = headers.collapseID {
            let isPerRun = campaign.collapse == .run
            list.append(
                Plan.Header(
                    name: "apns-collapse-id",
                    value: isPerRun ? "\(collapseID.dropLast(2))-<run>" : collapseID,
                    meaning: isPerRun ? "one per run" : ""))
        }
        return list
    }
}
