import Campaigns
import Model
import Store

/// What happened to one device, as people and programs read it.
struct ExplanationPage {
    let story: DeviceStory
    let explanation: Explanation

    var text: String {
        let cut = story.isCut ? ["(only the latest runs are told)"] : []
        let lines = explanation.lines.map { line in
            "\(line.at.iso8601.padded(to: 25))\(line.run.map { "run \($0)" }?.padded(to: 9) ?? "         ")\(line.text)"
        }
        let nothing = lines.isEmpty ? ["nothing on record but the device itself"] : []
        let now = explanation.now.map { "\("now".padded(to: 25))         \($0)" }
        return (["\(DeviceText.line(story.device)), \(story.device.record.topic)"] + cut + lines + nothing + now)
            .joined(separator: "\n")
    }

}
