-- Returns the values of a hash. KEYS: the hash.
return {'found', redis.call('HGETALL', KEYS[1])}
