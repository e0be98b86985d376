-- Renews a question that its process has to renew: id. Returns whether the question is open.
local id = ARGV[COMMON + 1]
local state = get(id, 'state')
if state ~= 'waiting' and state ~= 'running' then
  return 'not_open'
end
if get(id, 'has_lease') == '1' then
  local deadline = now + lease_time
  if state == 'waiting' then
    deadline = math.min(deadline, tonumber(get(id, 'expires')))
  end
  set_deadline(id, deadline)
end
return 'open'
