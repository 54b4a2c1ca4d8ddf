-- A session log of version 0: two sessions, one call without a result.
PRAGMA application_id = 1146309703;
PRAGMA user_version = 0;
CREATE TABLE sessions (id TEXT PRIMARY KEY, label TEXT NOT NULL, started INTEGER NOT NULL);
CREATE TABLE events (id INTEGER PRIMARY KEY, session TEXT NOT NULL, time INTEGER NOT NULL, type TEXT NOT NULL, payload TEXT NOT NULL);
INSERT INTO sessions VALUES ('first', 'the first', 1000), ('second', 'the second', 2000);
INSERT INTO events VALUES (1, 'first', 1000, 'session/started', '{"label":"the first","front_door":"cli"}');
INSERT INTO events VALUES (2, 'second', 2000, 'session/started', '{"label":"the second","front_door":"mcp"}');
INSERT INTO events VALUES (3, 'first', 2001, 'tool/call', '{"call_id":"a","name":"echo","digest":"d","arguments":{}}');
INSERT INTO events VALUES (4, 'second', 2002, 'tool/call', '{"call_id":"a","name":"grep","digest":"d","arguments":{}}');
INSERT INTO events VALUES (5, 'first', 2003, 'tool/result', '{"call_id":"a","outcome":"success","content":[]}');
INSERT INTO events VALUES (6, 'first', 2004, 'tool/call', '{"call_id":"a","name":"echo","digest":"d","arguments":{}}');
INSERT INTO events VALUES (7, 'first', 2005, 'tool/result', '{"call_id":"a","outcome":"failure","code":"DENIED","content":[]}');
