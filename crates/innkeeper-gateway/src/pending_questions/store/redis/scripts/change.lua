-- Takes a step: id, who answers, process, reason, response, and for each permitted kind and state: kind,
-- state, state after the step, whether the state after the step is open.
local id = ARGV[COMMON + 1]
local kind, state = get(id, 'kind'), get(id, 'state')
if state == '' then
  return 'unknown'
end
for index = COMMON + 6, #ARGV, 4 do
  if ARGV[index] == kind and ARGV[index + 1] == state then
    for offset, field in ipairs({'answered_by', 'claimed_by', 'reason', 'response'}) do
      local value = ARGV[COMMON + 1 + offset]
      if value ~= '' then
        redis.call('HSET', key(id), field, value)
      end
    end
    move(id, ARGV[index + 2], ARGV[index + 3] == '1')
    return {'done', record({}, id)}
  end
end
return {'refused', record({}, id)}
