-- Returns a question: id.
return {'found', record({}, ARGV[COMMON + 1])}
