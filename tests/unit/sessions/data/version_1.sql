-- A session log of version 1, as it was written when that version was new.
PRAGMA application_id = 1146309703;
PRAGMA user_version = 1;
CREATE TABLE events (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,
        time INTEGER NOT NULL, type TEXT NOT NULL, call INTEGER, call_id TEXT, name TEXT, outcome TEXT, code TEXT,
        payload TEXT NOT NULL);
INSERT INTO "events" VALUES(1,1,1,1700000001000,'session/started',NULL,NULL,NULL,NULL,NULL,'{"label":"process 4711","front_door":"host","pid":4711}');
INSERT INTO "events" VALUES(2,1,2,1700000002000,'plugin/state',NULL,NULL,NULL,NULL,NULL,'{"plugin":"sessions","name":"sessions","state":"active","previous":"loading"}');
INSERT INTO "events" VALUES(3,2,1,1700000003000,'session/started',NULL,NULL,NULL,NULL,NULL,'{"label":"an agent","front_door":"mcp","pid":4711,"agent":"agent"}');
INSERT INTO "events" VALUES(4,2,2,1700000004000,'tool/call',2,'c1','echo',NULL,NULL,'{"call_id":"c1","name":"echo","digest":"9ecac7a60eefd6457681a37980ad6f76afc49e8fcab329a4437a35579475cb35","arguments":{"text":"hello"}}');
INSERT INTO "events" VALUES(5,2,3,1700000005000,'tool/result',2,NULL,NULL,'success',NULL,'{"outcome":"success","ms":0.163,"content":[{"type":"text","text":"hello"}]}');
INSERT INTO "events" VALUES(6,2,4,1700000006000,'tool/call',4,'c2','echo',NULL,NULL,'{"call_id":"c2","name":"echo","digest":"9ecac7a60eefd6457681a37980ad6f76afc49e8fcab329a4437a35579475cb35","arguments":{"text":"hello"}}');
INSERT INTO "events" VALUES(7,2,5,1700000007000,'tool/result',4,NULL,NULL,'failure','DENIED','{"outcome":"failure","code":"DENIED","ms":0.237,"error":{"name":"ToolDenied","code":"DENIED","plugin":"gate","message":"not today"},"content":[{"type":"text","text":"Error: not today"}]}');
INSERT INTO "events" VALUES(8,2,6,1700000008000,'tool/call',6,'c3','echo',NULL,NULL,'{"call_id":"c3","name":"echo","digest":"9ecac7a60eefd6457681a37980ad6f76afc49e8fcab329a4437a35579475cb35","arguments":{"text":"hello"}}');
INSERT INTO "events" VALUES(9,1,3,1700000009000,'plugin/state',NULL,NULL,NULL,NULL,NULL,'{"plugin":"sessions","name":"sessions","state":"unloading","previous":"active"}');
INSERT INTO "events" VALUES(10,2,7,1700000010000,'tool/result',6,NULL,NULL,'interrupted','INTERRUPTED','{"outcome":"interrupted","code":"INTERRUPTED","error":{"message":"the log was closed before the call had a result","name":"Interrupted","code":"INTERRUPTED"}}');
CREATE TABLE owners (number INTEGER PRIMARY KEY, lock TEXT NOT NULL, pid INTEGER NOT NULL,
        started INTEGER NOT NULL);
CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, label TEXT NOT NULL,
        front_door TEXT NOT NULL, owner INTEGER, started INTEGER NOT NULL, ended INTEGER, ending TEXT);
INSERT INTO "sessions" VALUES(1,'20231114-221321-6bed29f5','process 4711','host',NULL,1700000001000,1700000010000,'closed');
INSERT INTO "sessions" VALUES(2,'20231114-221323-8c5f9999','an agent','mcp',NULL,1700000003000,1700000010000,'closed');
CREATE UNIQUE INDEX events_of_session ON events (session, seq);
CREATE INDEX results_by_call ON events (session, call) WHERE type = 'tool/result';
CREATE INDEX calls_by_id ON events (call_id) WHERE type = 'tool/call';
