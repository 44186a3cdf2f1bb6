import Campaigns
import Model
import Rendering
import Sending
import Testing

struct PayloadSampleTests {
    @Test func `a sample names an attribute of the device as the template does`() throws {
        var template = Template(name: "t")
        template.contentAvailable = true
        template.custom = [.init("name", .text(try TemplateText(parsing: "{{device.attributes.name}}")))]
        let sample = try PayloadRenderer(template: template, pushType: .background, variables: [:]).sample(0)
        #expect(sample.contains("\"name\":\"<attributes.name>\""), "\(sample)")
    }
}
