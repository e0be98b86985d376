-- The names and functions of all scripts. The arguments of a script start after the common ones.
local connection, events, mark = KEYS[1], KEYS[2], KEYS[3]
local all, active = KEYS[4], KEYS[5]
local id, channel = ARGV[1], ARGV[2]
local expiry, terminated_time, expired_time = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local ACTIVE, TERMINATED = ARGV[6], ARGV[7]
local COMMON = 7

local time = redis.call('TIME')
-- Milliseconds since 1970.
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function integer(number)
  return string.format('%.0f', number)
end

local function counter(name)
  return tonumber(redis.call('HGET', connection, name)) or 0
end

-- Returns the state, or false if the connection does not exist.
local function state()
  return redis.call('HGET', connection, 'state')
end

local function found()
  return {'found', redis.call('HGETALL', connection)}
end

-- What is known of an id without a connection.
local function missing()
  if redis.call('EXISTS', mark) == 1 then
    return {'expired'}
  end
  return {'unknown'}
end

local function remove_expired(set)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', integer(now))
end

-- Lists the connection until its expiry. A set without a connection expires.
local function list(set, expires)
  redis.call('ZADD', set, integer(expires), id)
  redis.call('PEXPIREAT', set, integer(now + math.max(expiry, 1)))
end

-- Sets the expiry of everything that belongs to the connection in a state.
local function renew(current)
  local duration = expiry
  if current == TERMINATED then
    duration = math.min(expiry, terminated_time)
  end
  local expires = now + duration
  redis.call('SET', mark, '', 'PXAT', integer(expires + expired_time))
  list(all, expires)
  local user_set = redis.call('HGET', connection, 'user_set')
  if user_set and user_set ~= '' then
    list(user_set, expires)
  end
  if current == ACTIVE then
    list(active, expires)
  else
    redis.call('ZREM', active, id)
  end
  redis.call('PEXPIREAT', events, integer(expires))
  redis.call('PEXPIREAT', connection, integer(expires))
end
