-- Returns whether a replica is the owner of a key, with its fence.
local function is_owner(key, replica, fence)
  local owner = redis.call('HMGET', key, 'replica', 'fence')
  return owner[1] == replica and owner[2] == fence
end
