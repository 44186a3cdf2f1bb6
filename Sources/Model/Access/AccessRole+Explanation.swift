extension AccessRole {
    package var explanation: String {
        switch self {
        case .viewer: "Reads everything and changes nothing."
        case .author: "Writes campaigns and segments, plans campaigns, and tests them on one device."
        case .sender: "Plans, starts, pauses, resumes and cancels runs. Does not write files."
        case .approver: "Approves plans, stops faulty runs, and lifts stops."
        case .admin: "May do everything."
        case .registrar: "Is the backend of an app: registers and removes devices, and reads nothing else."
        }
    }
}
