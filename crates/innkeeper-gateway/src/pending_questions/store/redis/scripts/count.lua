-- Returns the number of open questions, and one more than the number of changes.
local changes = tonumber(redis.call('GET', last_position) or '0')
return {'counts', {integer(redis.call('ZCARD', open)), integer(changes + 1)}}
