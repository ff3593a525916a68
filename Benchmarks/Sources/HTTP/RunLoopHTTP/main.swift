// A client of RunLoopHTTP, on the main thread's loop: `AskRunLoopHTTP PORT get|post|stream CONNECTIONS SECONDS`.
try ask()
