-- A store as version 3 of the schema had it: one of version 2 that its code brought up to date; never edited.
PRAGMA application_id = 1179534930;
PRAGMA user_version = 3;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('namespace',X'92669fae712740998ff0df01c8785b6b');
CREATE TABLE topic (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO topic VALUES(1,'com.example.wendercast');
CREATE TABLE device (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id INTEGER NOT NULL REFERENCES topic (id),
    environment INTEGER NOT NULL CHECK (environment IN (0, 1)),
    status INTEGER NOT NULL DEFAULT 0 CHECK (status IN (0, 1, 2)),
    alerts_allowed INTEGER CHECK (alerts_allowed IN (0, 1)),
    token_generation INTEGER NOT NULL DEFAULT 1 CHECK (token_generation >= 1),
    token BLOB NOT NULL CHECK (length(token) BETWEEN 32 AND 100),
    locale TEXT,
    badge INTEGER NOT NULL DEFAULT 0,
    registered_at INTEGER,
    last_seen_at INTEGER,
    status_reason TEXT,
    status_at INTEGER,
    installation_id TEXT,
    user_id TEXT,
    time_zone TEXT,
    country TEXT,
    app_version TEXT,
    app_version_key TEXT,
    os_version TEXT,
    os_version_key TEXT,
    model TEXT,
    attributes TEXT
) STRICT;
INSERT INTO device VALUES(1,1,0,2,1,1,X'abababababababababababababababababababababababab0000000000000001','en',0,1799913600000,1799996400000,'Unregistered',1800000000000,'install-1','ray',NULL,'DE','4.1','a4a1',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(2,1,0,1,1,1,X'abababababababababababababababababababababababab0000000000000002','de',0,1799913600000,1799992800000,'BadDeviceToken',1800000002000,'install-2','ray',NULL,'DE','4.2','a4a2',NULL,NULL,NULL,'{"plan":"pro"}');
INSERT INTO device VALUES(3,1,0,1,1,1,X'abababababababababababababababababababababababab0000000000000003','en',0,1799913600000,1799989200000,'BadDeviceToken',1800000002000,'install-3',NULL,'America/Sao_Paulo','BR','4.3','a4a3',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(4,1,1,0,1,1,X'abababababababababababababababababababababababab0000000000000004','de',0,1799913600000,1799985600000,NULL,NULL,'install-4',NULL,NULL,'DE','4.4','a4a4',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(5,1,0,0,1,1,X'abababababababababababababababababababababababab0000000000000005','en',0,1799913600000,1799982000000,NULL,NULL,'install-5',NULL,NULL,'DE','4.5','a4a5',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(6,1,0,0,1,1,X'abababababababababababababababababababababababab0000000000000006','de',0,1799913600000,1799978400000,NULL,NULL,'install-6',NULL,'America/Sao_Paulo','BR','4.6','a4a6',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(7,1,0,0,1,1,X'abababababababababababababababababababababababab0000000000000007','en',0,1799913600000,1799974800000,NULL,NULL,'install-7',NULL,NULL,'DE','4.7','a4a7',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(8,1,1,0,1,1,X'abababababababababababababababababababababababab0000000000000008','de',0,1799913600000,1799971200000,NULL,NULL,'install-8',NULL,NULL,'DE','4.8','a4a8',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(9,1,0,0,1,1,X'abababababababababababababababababababababababab0000000000000009','en',0,1799913600000,1799967600000,NULL,NULL,'install-9',NULL,'America/Sao_Paulo','BR','4.9','a4a9',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(10,1,0,0,1,2,X'abababababababababababababababababababababababab0000000000000070','de',0,1800000000000,1799964000000,NULL,NULL,'install-10',NULL,NULL,'DE','4.10','a4b10',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(11,1,0,0,0,1,X'abababababababababababababababababababababababab000000000000000b','en',0,1799913600000,1799960400000,NULL,NULL,'install-11',NULL,NULL,'DE','4.11','a4b11',NULL,NULL,NULL,NULL);
INSERT INTO device VALUES(12,1,1,0,1,1,X'abababababababababababababababababababababababab000000000000000c','de',0,1799913600000,1799956800000,NULL,NULL,'install-12',NULL,'America/Sao_Paulo','BR','4.12','a4b12',NULL,NULL,NULL,NULL);
CREATE TABLE proven_token (
    device_id INTEGER PRIMARY KEY,
    token_generation INTEGER NOT NULL
) STRICT;
INSERT INTO proven_token VALUES(1,1);
INSERT INTO proven_token VALUES(2,1);
INSERT INTO proven_token VALUES(3,1);
INSERT INTO proven_token VALUES(4,1);
INSERT INTO proven_token VALUES(5,1);
INSERT INTO proven_token VALUES(6,1);
INSERT INTO proven_token VALUES(7,1);
INSERT INTO proven_token VALUES(8,1);
INSERT INTO proven_token VALUES(9,1);
INSERT INTO proven_token VALUES(10,2);
INSERT INTO proven_token VALUES(12,1);
CREATE TABLE token_history (
    device_id INTEGER NOT NULL REFERENCES device (id) ON DELETE CASCADE,
    token_generation INTEGER NOT NULL,
    token BLOB NOT NULL,
    environment INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    PRIMARY KEY (device_id, token_generation)
) STRICT, WITHOUT ROWID;
INSERT INTO token_history VALUES(10,1,X'abababababababababababababababababababababababab000000000000000a',0,1800000000000);
CREATE TABLE tag (
    device_id INTEGER NOT NULL REFERENCES device (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (device_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO tag VALUES(2,'beta');
INSERT INTO tag VALUES(2,'vip');
CREATE TABLE segment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    -- 0 is static, its devices stand in segment_member; 1 is dynamic, an expression: as written, and as JSON.
    kind INTEGER NOT NULL DEFAULT 0 CHECK (kind IN (0, 1)),
    source TEXT,
    expression TEXT CHECK ((expression IS NULL) = (kind = 0)),
    -- Of a dynamic segment: when it was defined.
    members INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO segment VALUES(1,'fans',0,NULL,NULL,5,1800000000000);
INSERT INTO segment VALUES(2,'germans',1,'country = "DE"','{"comparison":{"_0":{"country":{}},"_1":"=","_2":{"text":{"_0":"DE"}}}}',8,1800000000000);
CREATE TABLE segment_member (
    segment_id INTEGER NOT NULL REFERENCES segment (id) ON DELETE CASCADE,
    device_id INTEGER NOT NULL REFERENCES device (id) ON DELETE CASCADE,
    PRIMARY KEY (segment_id, device_id)
) STRICT, WITHOUT ROWID;
INSERT INTO segment_member VALUES(1,1);
INSERT INTO segment_member VALUES(1,2);
INSERT INTO segment_member VALUES(1,3);
INSERT INTO segment_member VALUES(1,4);
INSERT INTO segment_member VALUES(1,5);
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign TEXT NOT NULL,
    occurrence TEXT NOT NULL,
    state TEXT NOT NULL,
    state_reason TEXT,
    -- A person whose `resume` the run waits for; NULL where it paused itself.
    paused_by TEXT,
    -- What it met, where it paused itself.
    halt TEXT,
    is_frozen INTEGER NOT NULL DEFAULT 0,
    is_test INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    -- The lock: who sends this run, and when it was last heard of.
    owner TEXT,
    heartbeat_at INTEGER,
    -- The account, changed in the transaction that changes the rows it counts.
    audience INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,
    leased INTEGER NOT NULL DEFAULT 0,
    accepted INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    unknown INTEGER NOT NULL DEFAULT 0,
    suppressed INTEGER NOT NULL DEFAULT 0,
    devices_gone INTEGER NOT NULL DEFAULT 0,
    devices_suspended INTEGER NOT NULL DEFAULT 0,
    -- Once every delivery has its end state: requests made, and accepted deliveries of which an earlier request
    -- stayed without an answer. From then on outcome_summary has the rest of the report.
    requests INTEGER,
    possible_duplicates INTEGER,
    -- From then on there are no deliveries, or ever fewer: the summary is all that is left.
    outcomes_pruned_at INTEGER CHECK (outcomes_pruned_at IS NULL OR requests IS NOT NULL),
    -- Of the campaign's split, for whoever repeats it in SQL.
    holdout_seed INTEGER NOT NULL,
    variant_seed INTEGER NOT NULL,
    -- JSON, and its FNV-1a hash to tell whether it is still what was frozen.
    definition_hash INTEGER NOT NULL,
    definition TEXT NOT NULL,
    -- Of background pushes: of those that wait for their budget, a device keeps the newest of each key.
    coalesce_key TEXT, is_refused INTEGER NOT NULL DEFAULT 0, outcomes_digest INTEGER,
    UNIQUE (campaign, occurrence)
) STRICT;
INSERT INTO run VALUES(1,'new-podcast','once','running',NULL,NULL,NULL,1,0,1800000000000,1800000000000,NULL,'a',1800000000000,12,4,2,3,0,0,3,0,0,NULL,NULL,NULL,1564475221,2098985400,6726890766965253156,'{"campaign":{"audience":{"expression":{"everyone":{}},"source":""},"collapse":{"run":{}},"guards":{},"holdoutPercent":10,"maxAttempts":5,"name":"new-podcast","onUnknown":"resend","priority":10,"pushType":"alert","template":"new-podcast","topic":"com.example.wendercast","variables":{},"variants":[{"name":"long","template":"new-podcast","weight":50},{"name":"short","template":"new-podcast","weight":50}]},"plannedAt":1800000000000,"template":{"alert":{"localized":{"_0":[{"body":{"parts":[{"literal":{"_0":"en"}}]},"locale":"en"},{"body":{"parts":[{"literal":{"_0":"de"}}]},"locale":"de"}]}},"contentAvailable":false,"custom":[],"mutableContent":false,"name":"new-podcast"},"variables":{},"variantTemplates":{},"version":1}',NULL,0,NULL);
INSERT INTO run VALUES(2,'refresh','once','running',NULL,NULL,NULL,1,0,1800000000000,1800000000000,NULL,'a',1800000000000,12,6,3,3,0,0,0,0,0,NULL,NULL,NULL,1034846666,1034894010,7346133309058587558,'{"campaign":{"audience":{"expression":{"everyone":{}},"source":""},"collapse":{"key":{"_0":"r"}},"guards":{},"maxAttempts":5,"name":"refresh","onUnknown":"resend","priority":5,"pushType":"background","template":"refresh","topic":"com.example.wendercast","variables":{},"variants":[]},"plannedAt":1800000000000,"template":{"alert":{"localized":{"_0":[{"body":{"parts":[{"literal":{"_0":"en"}}]},"locale":"en"},{"body":{"parts":[{"literal":{"_0":"de"}}]},"locale":"de"}]}},"contentAvailable":false,"custom":[],"mutableContent":false,"name":"refresh"},"variables":{},"variantTemplates":{},"version":1}','r',0,NULL);
INSERT INTO run VALUES(3,'done','2027-01-15T09:00','finished',NULL,NULL,NULL,1,0,1800000000000,1800000000000,1800000003000,NULL,NULL,12,0,0,8,3,0,1,1,2,11,0,NULL,226595749,1660247754,9129290591847382044,'{"campaign":{"audience":{"expression":{"everyone":{}},"source":""},"collapse":{"run":{}},"guards":{},"maxAttempts":5,"name":"done","onUnknown":"resend","priority":10,"pushType":"alert","template":"done","topic":"com.example.wendercast","variables":{},"variants":[]},"plannedAt":1800000000000,"template":{"alert":{"localized":{"_0":[{"body":{"parts":[{"literal":{"_0":"en"}}]},"locale":"en"},{"body":{"parts":[{"literal":{"_0":"de"}}]},"locale":"de"}]}},"contentAvailable":false,"custom":[],"mutableContent":false,"name":"done"},"variables":{},"variantTemplates":{},"version":1}',NULL,0,NULL);
INSERT INTO run VALUES(4,'done','2027-01-16T09:00','missed','found 3 h late',NULL,NULL,0,0,1800000004000,NULL,1800000004000,NULL,NULL,0,0,0,0,0,0,0,0,0,NULL,NULL,NULL,226595749,1660247754,9129290591847382044,'{"campaign":{"audience":{"expression":{"everyone":{}},"source":""},"collapse":{"run":{}},"guards":{},"maxAttempts":5,"name":"done","onUnknown":"resend","priority":10,"pushType":"alert","template":"done","topic":"com.example.wendercast","variables":{},"variants":[]},"plannedAt":1800000000000,"template":{"alert":{"localized":{"_0":[{"body":{"parts":[{"literal":{"_0":"en"}}]},"locale":"en"},{"body":{"parts":[{"literal":{"_0":"de"}}]},"locale":"de"}]}},"contentAvailable":false,"custom":[],"mutableContent":false,"name":"done"},"variables":{},"variantTemplates":{},"version":1}',NULL,0,NULL);
INSERT INTO run VALUES(5,'done','test-1','scheduled',NULL,NULL,NULL,1,1,1800000005000,NULL,NULL,NULL,NULL,1,1,0,0,0,0,0,0,0,NULL,NULL,NULL,226595749,1660247754,9129290591847382044,'{"campaign":{"audience":{"expression":{"everyone":{}},"source":""},"collapse":{"run":{}},"guards":{},"maxAttempts":5,"name":"done","onUnknown":"resend","priority":10,"pushType":"alert","template":"done","topic":"com.example.wendercast","variables":{},"variants":[]},"plannedAt":1800000000000,"template":{"alert":{"localized":{"_0":[{"body":{"parts":[{"literal":{"_0":"en"}}]},"locale":"en"},{"body":{"parts":[{"literal":{"_0":"de"}}]},"locale":"de"}]}},"contentAvailable":false,"custom":[],"mutableContent":false,"name":"done"},"variables":{},"variantTemplates":{},"version":1}',NULL,0,NULL);
CREATE TABLE schedule_mark (
    campaign TEXT NOT NULL PRIMARY KEY,
    schedule_hash INTEGER NOT NULL,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO schedule_mark VALUES('done',42,1800000000000);
CREATE TABLE daemon (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    owner TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    -- JSON, see DaemonStatus.
    status TEXT NOT NULL
) STRICT;
INSERT INTO daemon VALUES(1,'daemon-1',1800000000000,1800000000000,'{"campaigns":0,"problems":[],"running":[],"scheduled":0}');
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    run_id INTEGER,
    -- In whose name; what follows the detail is about the process that wrote it.
    actor TEXT NOT NULL,
    detail TEXT NOT NULL,
    -- JSON: path to SHA-256 of the files it is about.
    files TEXT,
    uid INTEGER,
    user TEXT,
    command TEXT,
    origin TEXT
, hash BLOB) STRICT;
INSERT INTO event VALUES(1,1800000000000,'run_created',1,'test','once',NULL,NULL,NULL,NULL,'command',X'c0516b4c6ed7cbc60ee73d49ab5082424694764d5308f2dca77172a915da6faf');
INSERT INTO event VALUES(2,1800000000000,'run_claimed',1,'a','',NULL,NULL,NULL,NULL,'command',X'51c9f6cc430b3443aaa1ffee28e6422232c25d255f2353476afd72fa3ccaa23c');
INSERT INTO event VALUES(3,1800000000000,'run_created',2,'test','once',NULL,NULL,NULL,NULL,'command',X'd016595cc83f668c98f3815f3e43ff8caa6e892b6d74bb69496047d44c702ad9');
INSERT INTO event VALUES(4,1800000000000,'run_claimed',2,'a','',NULL,NULL,NULL,NULL,'command',X'c5b4f1651646a592aaadc8e93b39ba5c9953effe2ccdfbc2d7226c434477eb82');
INSERT INTO event VALUES(5,1800000000000,'run_created',3,'test','2027-01-15T09:00',NULL,NULL,NULL,NULL,'command',X'7fb6655420aac326607edab32edf96f7dbd159577f5140c3d90cae9832c42495');
INSERT INTO event VALUES(6,1800000000000,'run_claimed',3,'a','',NULL,NULL,NULL,NULL,'command',X'14422bbd6af7bd0a5f4fdbe3e6fc41e26d9d9f5b04906eee3f215c72422f53f7');
INSERT INTO event VALUES(7,1800000003000,'run_finished',3,'a','',NULL,NULL,NULL,NULL,'command',X'53c337352d008e5f8138d21a7cdc4d670d75b97af8727a7cecfc2baa5011c21f');
INSERT INTO event VALUES(8,1800000004000,'run_missed',4,'scheduler','found 3 h late',NULL,NULL,NULL,NULL,'command',X'22b5143d2669708fec96e728cd3c12c3202adfac8854b3c4d67006fc406f04cf');
INSERT INTO event VALUES(9,1800000005000,'run_created',5,'ray','test of device 5',NULL,NULL,NULL,NULL,'command',X'acc3f93a3bb941eec68b890fad26a22aab2e81fd5e6f47330bcba35041741d4e');
CREATE TABLE feed (
    campaign TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    etag TEXT,
    last_modified TEXT,
    polled_at INTEGER NOT NULL,
    -- 0 until the address has answered with a feed.
    is_read INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    problem TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO feed VALUES('new-podcast','https://example.com/feed','"1"',NULL,1800000000000,1,0,NULL);
CREATE TABLE feed_item (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign TEXT NOT NULL,
    item TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    UNIQUE (campaign, item)
) STRICT;
INSERT INTO feed_item VALUES(1,'new-podcast','item-a',1800000000000);
INSERT INTO feed_item VALUES(2,'new-podcast','item-b',1800000000000);
CREATE TABLE webhook (
    url TEXT NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (url, event)
) STRICT, WITHOUT ROWID;
INSERT INTO webhook VALUES('https://hooks.example.com/a','failed');
INSERT INTO webhook VALUES('https://hooks.example.com/a','finished');
INSERT INTO webhook VALUES('https://hooks.example.com/a','missed');
INSERT INTO webhook VALUES('https://hooks.example.com/a','paused');
CREATE TABLE webhook_message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id INTEGER NOT NULL,
    url TEXT NOT NULL,
    run_id INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,
    problem TEXT,
    UNIQUE (event_id, url)
) STRICT;
INSERT INTO webhook_message VALUES(1,7,'https://hooks.example.com/a',3,'finished',NULL,1800000003000,0,1800000003000,NULL);
INSERT INTO webhook_message VALUES(2,8,'https://hooks.example.com/a',4,'missed','found 3 h late',1800000004000,0,1800000004000,NULL);
CREATE TABLE delivery (
    run_id INTEGER NOT NULL,
    device_id INTEGER NOT NULL,
    environment INTEGER NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
    attempt INTEGER NOT NULL,
    doubts INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    variant INTEGER,
    wave INTEGER,
    not_before INTEGER,
    locale_index INTEGER,
    held_for TEXT,
    held_until INTEGER,
    status INTEGER NOT NULL,
    reason TEXT,
    changed_at INTEGER NOT NULL, leases INTEGER NOT NULL DEFAULT 0, excused INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, device_id)
) STRICT, WITHOUT ROWID;
INSERT INTO delivery VALUES(1,1,0,1,1,0,1,0,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,1,0);
INSERT INTO delivery VALUES(1,2,0,1,1,0,1,1,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,1,0);
INSERT INTO delivery VALUES(1,3,0,1,1,0,1,1,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,1,0);
INSERT INTO delivery VALUES(1,4,1,0,0,0,1,0,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(1,5,0,4,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,'holdout',1800000000000,0,0);
INSERT INTO delivery VALUES(1,6,0,0,0,0,1,0,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(1,7,0,0,0,0,1,0,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(1,8,1,0,0,0,1,0,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(1,9,0,4,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,'holdout',1800000000000,0,0);
INSERT INTO delivery VALUES(1,10,0,0,0,0,2,0,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(1,11,0,4,0,0,1,0,NULL,NULL,NULL,NULL,NULL,0,'alerts_not_allowed',1800000000000,0,0);
INSERT INTO delivery VALUES(1,12,1,0,0,0,1,0,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,1,0,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,1,0);
INSERT INTO delivery VALUES(2,2,0,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,1,0);
INSERT INTO delivery VALUES(2,3,0,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,1,0);
INSERT INTO delivery VALUES(2,4,1,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,5,0,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,6,0,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,7,0,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,8,1,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,9,0,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,10,0,0,0,0,2,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,11,0,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(2,12,1,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000000000,0,0);
INSERT INTO delivery VALUES(3,1,0,2,1,0,1,NULL,NULL,NULL,0,NULL,NULL,410,'Unregistered',1800000001000,0,0);
INSERT INTO delivery VALUES(3,2,0,2,1,0,1,NULL,NULL,NULL,0,NULL,NULL,400,'BadDeviceToken',1800000001000,0,0);
INSERT INTO delivery VALUES(3,3,0,2,1,0,1,NULL,NULL,NULL,0,NULL,NULL,400,'BadDeviceToken',1800000001000,0,0);
INSERT INTO delivery VALUES(3,4,1,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,0,0);
INSERT INTO delivery VALUES(3,5,0,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,0,0);
INSERT INTO delivery VALUES(3,6,0,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,0,0);
INSERT INTO delivery VALUES(3,7,0,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,0,0);
INSERT INTO delivery VALUES(3,8,1,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,0,0);
INSERT INTO delivery VALUES(3,9,0,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,0,0);
INSERT INTO delivery VALUES(3,10,0,1,1,0,2,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,0,0);
INSERT INTO delivery VALUES(3,11,0,4,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,'alerts_not_allowed',1800000000000,0,0);
INSERT INTO delivery VALUES(3,12,1,1,1,0,1,NULL,NULL,NULL,0,NULL,NULL,200,NULL,1800000001000,0,0);
INSERT INTO delivery VALUES(5,5,0,0,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,1800000005000,0,0);
CREATE TABLE outcome_summary (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id),
    environment INTEGER NOT NULL,
    variant INTEGER,
    locale_index INTEGER,
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
    status INTEGER NOT NULL,
    reason TEXT,
    deliveries INTEGER NOT NULL CHECK (deliveries > 0)
) STRICT;
INSERT INTO outcome_summary VALUES(1,3,1,NULL,0,1,200,NULL,3);
INSERT INTO outcome_summary VALUES(2,3,0,NULL,0,2,400,'BadDeviceToken',2);
INSERT INTO outcome_summary VALUES(3,3,0,NULL,0,2,410,'Unregistered',1);
INSERT INTO outcome_summary VALUES(4,3,0,NULL,0,1,200,NULL,5);
INSERT INTO outcome_summary VALUES(5,3,0,NULL,NULL,4,0,'alerts_not_allowed',1);
CREATE TABLE lease (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL,
    owner TEXT NOT NULL,
    leased_at INTEGER NOT NULL,
    environment INTEGER NOT NULL,
    open INTEGER NOT NULL CHECK (open > 0),
    -- How many of its tokens were never accepted before; 1 if it reserved silent budget.
    unproven INTEGER NOT NULL,
    is_silent INTEGER NOT NULL,
    -- The last device taken fresh, 0 if all had been put off: nothing up to here is fresh again before a recovery.
    fresh_until INTEGER NOT NULL,
    entries BLOB NOT NULL
) STRICT;
INSERT INTO lease VALUES(2,1,'a',1800000000000,0,2,2,0,7,X'0600000000000000010000000100000007000000000000000100000001000000');
INSERT INTO lease VALUES(4,2,'a',1800000000000,0,3,3,1,7,X'050000000000000001000000010000000600000000000000010000000100000007000000000000000100000001000000');
CREATE TABLE silent_ledger (
    device_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    lease_number INTEGER NOT NULL,
    reserved_at INTEGER NOT NULL,
    settled_at INTEGER,
    PRIMARY KEY (device_id, run_id, lease_number)
) STRICT, WITHOUT ROWID;
INSERT INTO silent_ledger VALUES(1,2,1,1800000000000,1800000001000);
INSERT INTO silent_ledger VALUES(2,2,1,1800000000000,1800000001000);
INSERT INTO silent_ledger VALUES(3,2,1,1800000000000,1800000001000);
INSERT INTO silent_ledger VALUES(5,2,1,1800000000000,NULL);
INSERT INTO silent_ledger VALUES(6,2,1,1800000000000,NULL);
INSERT INTO silent_ledger VALUES(7,2,1,1800000000000,NULL);
CREATE TABLE token_heard (
    device_id INTEGER PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
    heard_at INTEGER NOT NULL
) STRICT;
CREATE TABLE put_off_index (
    name TEXT NOT NULL PRIMARY KEY,
    sql TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE provider_token (
    team_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    token TEXT NOT NULL,
    signed_at INTEGER NOT NULL,
    held_until INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    signed_after INTEGER NOT NULL,
    PRIMARY KEY (team_id, key_id, fingerprint)
) STRICT, WITHOUT ROWID;
INSERT INTO provider_token VALUES('DEF123GHIJ','ABC123DEFG','00ff','bearer 1',1800000000000,1800001200000,'boot',9000);
CREATE TABLE clock_reading (
    boot TEXT NOT NULL PRIMARY KEY,
    wall_at INTEGER NOT NULL,
    uptime INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE clock_step (
    id INTEGER PRIMARY KEY,
    expected_at INTEGER NOT NULL,
    shown_at INTEGER NOT NULL,
    is_told INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE endpoint_hold (
    run_id INTEGER NOT NULL REFERENCES run (id),
    environment INTEGER NOT NULL,
    endpoint TEXT NOT NULL,
    status INTEGER,
    since INTEGER NOT NULL,
    next_try_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, environment)
) STRICT, WITHOUT ROWID;
CREATE TABLE pace_bucket (
    name TEXT NOT NULL,
    boot TEXT NOT NULL,
    tokens REAL NOT NULL,
    started_at INTEGER NOT NULL,
    filled_at INTEGER NOT NULL,
    wall_at INTEGER NOT NULL,
    PRIMARY KEY (name, boot)
) STRICT, WITHOUT ROWID;
CREATE TABLE event_chain (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    events INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
INSERT INTO event_chain VALUES(1,9,X'acc3f93a3bb941eec68b890fad26a22aab2e81fd5e6f47330bcba35041741d4e');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('device',12);
INSERT INTO sqlite_sequence VALUES('segment',2);
INSERT INTO sqlite_sequence VALUES('run',5);
INSERT INTO sqlite_sequence VALUES('lease',8);
INSERT INTO sqlite_sequence VALUES('webhook_message',2);
INSERT INTO sqlite_sequence VALUES('feed_item',2);
CREATE UNIQUE INDEX device_installation ON device (installation_id, topic_id)
    WHERE installation_id IS NOT NULL;
CREATE UNIQUE INDEX device_token ON device (token, environment, topic_id);
CREATE INDEX device_user ON device (user_id, topic_id) WHERE user_id IS NOT NULL;
CREATE INDEX segment_member_device ON segment_member (device_id);
CREATE INDEX run_coalescing ON run (coalesce_key, state) WHERE coalesce_key IS NOT NULL;
CREATE INDEX run_open ON run (state) WHERE state IN ('scheduled', 'running');
CREATE INDEX event_run ON event (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX webhook_message_next ON webhook_message (next_at);
CREATE INDEX delivery_waiting ON delivery (run_id, environment, not_before)
    WHERE state = 0 AND not_before IS NOT NULL;
CREATE INDEX outcome_summary_run ON outcome_summary (run_id);
CREATE INDEX lease_run ON lease (run_id);
CREATE VIEW device_view AS SELECT device.id AS id, topic.name AS topic, CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END AS environment,
CASE status WHEN 0 THEN 'active' WHEN 1 THEN 'suspended' ELSE 'gone' END AS status, status_reason,
installation_id, user_id, locale, time_zone, country, app_version, app_version_key, os_version, os_version_key,
model, alerts_allowed, badge, registered_at, last_seen_at, attributes FROM device LEFT JOIN topic ON topic.id = device.topic_id;
CREATE VIEW tag_view AS SELECT device_id, name AS tag FROM tag;
CREATE VIEW segment_view AS SELECT segment.name AS segment, segment_member.device_id AS device_id FROM segment_member JOIN segment ON segment.id = segment_member.segment_id;
CREATE VIEW delivery_view AS SELECT run_id, run.campaign AS campaign, run.occurrence AS occurrence, device_id, CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END AS environment,
CASE delivery.state
    WHEN 0 THEN 'pending' WHEN 1 THEN 'accepted' WHEN 2 THEN 'rejected' WHEN 3 THEN 'unknown'
    ELSE 'suppressed'
END AS state,
delivery.status AS status, delivery.reason AS reason, delivery.attempt AS attempts,
json_extract(run.definition, '$.campaign.variants[' || delivery.variant || '].name') AS variant,
delivery.changed_at AS changed_at FROM delivery JOIN run ON run.id = delivery.run_id WHERE run.is_test = 0;
CREATE VIEW run_view AS SELECT id, campaign, occurrence, state, is_test, created_at, started_at, finished_at, holdout_seed, variant_seed FROM run;
CREATE INDEX run_campaign ON run (campaign, id);
CREATE INDEX run_campaign_state ON run (campaign, state, id) WHERE is_test = 0;
CREATE INDEX run_halted ON run (id) WHERE state = 'paused' AND paused_by IS NULL;
COMMIT;
