-- Returns the ids of the active connections.
remove_expired(active)
return {'active', redis.call('ZRANGE', active, 0, -1)}
