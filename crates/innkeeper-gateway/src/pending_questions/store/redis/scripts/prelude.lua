-- The names and functions of all scripts. The arguments of a script start after the common ones.
local open, final, deadlines, last_position = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local prefix, process_ended = ARGV[1], ARGV[5]
local lease_time, keep_time, max_final = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local COMMON = 5

local time = redis.call('TIME')
-- Milliseconds since 1970.
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function integer(number)
  return string.format('%.0f', number)
end

local function key(id)
  return prefix .. ':question:' .. id
end

local function principal_set(principal)
  return prefix .. ':principal:' .. principal
end

local function get(id, field)
  return redis.call('HGET', key(id), field) or ''
end

-- Adds the fields of a question to a response.
local function record(response, id)
  local values = redis.call('HMGET', key(id), 'content', 'state', 'position', 'created', 'expires',
    'changed', 'claimed_by', 'answered_by', 'reason', 'response')
  if values[1] then
    table.insert(response, id)
    for index = 1, 10 do
      table.insert(response, values[index] or '')
    end
  end
  return response
end

-- Sets the time at which an open question changes by itself, and how long Redis keeps the question.
local function set_deadline(id, deadline)
  redis.call('ZADD', deadlines, integer(deadline), id)
  redis.call('PEXPIREAT', key(id), integer(deadline + keep_time))
end

local function forget(id)
  local principal = get(id, 'principal')
  redis.call('ZREM', open, id)
  redis.call('ZREM', deadlines, id)
  redis.call('SREM', principal_set(principal), id)
end

-- Gives the question its next position.
local function announce(id)
  local position = redis.call('INCR', last_position)
  redis.call('HSET', key(id), 'position', integer(position), 'changed', integer(now))
  redis.call('PUBLISH', prefix, integer(position))
  return position
end

-- Makes room for a final question: the oldest one of the principal with the most goes.
local function limit_final()
  while redis.call('ZCARD', final) > max_final do
    local counts, oldest, most = {}, {}, nil
    for _, id in ipairs(redis.call('ZRANGE', final, 0, -1)) do
      local principal = get(id, 'principal')
      if principal == '' then
        -- Redis has removed the question.
        redis.call('ZREM', final, id)
      else
        counts[principal] = (counts[principal] or 0) + 1
        oldest[principal] = oldest[principal] or id
        if not most or counts[principal] > counts[most] then
          most = principal
        end
      end
    end
    if redis.call('ZCARD', final) > max_final then
      redis.call('DEL', key(oldest[most]))
      redis.call('ZREM', final, oldest[most])
    end
  end
end

local function move(id, after, is_open)
  local position = announce(id)
  redis.call('HSET', key(id), 'state', after)
  if is_open then
    redis.call('HSET', key(id), 'has_lease', '1')
    redis.call('ZADD', open, integer(position), id)
    set_deadline(id, now + lease_time)
    return
  end
  forget(id)
  redis.call('ZADD', final, integer(position), id)
  redis.call('PEXPIREAT', key(id), integer(now + keep_time))
  limit_final()
end

-- Takes the steps that the time has brought.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', integer(now))) do
  local state = get(id, 'state')
  if state == 'running' then
    move(id, 'outcome_unknown', false)
  elseif state == 'waiting' and tonumber(get(id, 'expires')) <= now then
    move(id, 'expired', false)
  elseif state == 'waiting' then
    redis.call('HSET', key(id), 'reason', process_ended)
    move(id, 'ended', false)
  else
    redis.call('ZREM', open, id)
    redis.call('ZREM', deadlines, id)
  end
end
