// One sentence for each state and reason that a person meets. The reference of the guide and the pages show them.

extension RunState {
    package var explanation: String {
        switch self {
        case .scheduled: "The run was created and has not begun."
        case .running: "The run is selecting devices, sending, or waiting for a time at which it may send."
        case .paused: "A person paused the run, or it paused itself. The reason is shown beside it."
        case .finished: "Every delivery has a final outcome."
        case .cancelled: "A person ended the run. The remaining deliveries are suppressed as `cancelled`."
        case .failed: "An unrecoverable error ended the run."
        case .missed: "The run was found more than `late_by_max` after its time, and nothing was sent."
        }
    }
}

extension RunHalt {
    package var explanation: String {
        switch self {
        case .unreachable: "APNs could not be reached. The run continues automatically."
        case .credential: "APNs rejected the signing key or certificate. The run tries again after two minutes."
        case .breaker: "The responses showed that the run is faulty. Resume or cancel it after you know why."
        case .late: "The run was found interrupted more than `late_by_max` after its time. Resume or cancel it."
        case .stage: "A stage did not pass. Look at its counts, then resume or cancel the run."
        case .approval: "The next stage waits for a person's approval."
        case .volume: "The run is much larger than usual. Check its audience, then resume or cancel it."
        case .grown: "The audience has grown beyond the approved size. Cancel the run and plan it again."
        case .restored: "The store was restored from a backup and may lack later pushes. Resume or cancel the run."
        case .unsuccessful: "The run finished, but reached no device, or too many of its deliveries failed."
        }
    }
}

extension DeliveryState {
    package var explanation: String {
        switch self {
        case .pending: "The delivery waits for its turn or for its time."
        case .accepted: "APNs accepted the push. Whether the device showed it is not known."
        case .rejected: "APNs rejected the push permanently, or the attempts ran out."
        case .unknown: "The request was sent and no response arrived. The device may or may not have received the push."
        case .suppressed: "Fanfare deliberately did not send the push. The reason is recorded."
        }
    }
}

extension SuppressionReason {
    package var explanation: String {
        switch self {
        case .silentBudget:
            "The silent budget of the device is used up, and the next slot comes after the push expires."
        case .frequencyCap:
            "The device has had as many pushes as a frequency cap allows, and the next slot comes too late."
        case .coalesced: "A newer background push of the same kind replaced this one."
        case .quietHours: "The push would have arrived during the quiet hours of the device."
        case .expired: "The push had expired before it could be sent."
        case .holdout: "The campaign holds this device out, to compare it with the devices that get the push."
        case .alertsNotAllowed: "The person does not allow alerts from the app."
        case .wrongEnvironment: "The device is suspended: its token belongs to another environment or topic."
        case .tokenGone: "The device token is no longer valid."
        case .payloadTooLarge: "The rendered payload is larger than Apple allows."
        case .cancelled: "The run was cancelled before the push was sent."
        case .late: "The device's send time had passed when the run started, and `missed_zone` is `drop`."
        case .unknownZone: "The time zone of the device is not known, and `unknown_zone` is `drop`."
        case .duplicateOfUser: "Another device of the same user gets the push, and `dedupe` is `user`."
        }
    }
}

extension StageVerdict {
    package var explanation: String {
        switch self {
        case .go: "The share of failures is below the tolerated share. The next stage may begin."
        case .halt: "The share of failures is above the tolerated share. The run pauses."
        case .undecided: "The share of failures is uncertain, or too few responses arrived. The run waits for a person."
        }
    }
}
