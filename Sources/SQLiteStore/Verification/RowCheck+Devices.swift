extension RowCheck {
    /// What devices, their tokens and the sets they are in promise. `NOT INDEXED`: an index that is damaged or missing
    /// must not hide what it should have prevented.
    static let devices = [
        RowCheck(
            "tokens", "a token of one topic and environment belongs to one device",
            """
            SELECT NULL, min(id), 'its token is also held by ' || (count(*) - 1) || ' other device(s), the last is '
                || max(id)
            FROM device NOT INDEXED GROUP BY token, environment, topic_id HAVING count(*) > 1
            """),
        RowCheck(
            "installations", "an installation of one topic is one device",
            """
            SELECT NULL, min(id), 'its installation is also ' || (count(*) - 1) || ' other device(s), the last is '
                || max(id)
            FROM device NOT INDEXED WHERE installation_id IS NOT NULL
            GROUP BY installation_id, topic_id HAVING count(*) > 1
            """),
        RowCheck(
            "device_status", "no device is suspended or gone for something older than its last registration",
            """
            SELECT NULL, id, iif(
                status_at IS NULL, 'it is not active, and nothing says since when',
                'it was registered at ' || registered_at || ', after the ' || coalesce(status_reason, 'answer') || ' of '
                    || status_at || ' that took it out')
            FROM device NOT INDEXED WHERE status <> 0 AND (status_at IS NULL OR registered_at > status_at)
            """),
        RowCheck(
            "token_history", "old and proven tokens are older than the device's, or its own",
            """
            SELECT NULL, device_id, 'token ' || token_history.token_generation || ' counts as replaced, the device is at '
                || device.token_generation
            FROM token_history JOIN device ON device.id = device_id
            WHERE token_history.token_generation >= device.token_generation
            UNION ALL
            SELECT NULL, device_id, iif(
                device.id IS NULL, 'a token of it counts as proven, but there is no such device',
                'token ' || proven_token.token_generation || ' counts as proven, the device is at '
                    || device.token_generation)
            FROM proven_token LEFT JOIN device ON device.id = device_id
            WHERE device.id IS NULL OR proven_token.token_generation > device.token_generation
            """),
        RowCheck(
            "segments", "the size of a segment is the number of its members",
            """
            SELECT NULL, NULL, 'segment "' || name || '" counts ' || members || ' members and has '
                || (SELECT count(*) FROM segment_member WHERE segment_id = segment.id)
            FROM segment
            WHERE kind = 0 AND members <> (SELECT count(*) FROM segment_member WHERE segment_id = segment.id)
            """),
    ]
}
