-- Returns the connection.
if not state() then
  return missing()
end
return found()
