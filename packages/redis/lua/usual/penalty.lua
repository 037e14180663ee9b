-- The usual states of a penalty (algorithms/penalty.lua) whose request is allowed: nothing counted, and strikes that block nobody.
local VERSION, FORMAT, LENGTH = 1, '<BI6I4I6I6I6', 29

local function prepare() end

local function consume(policy, _, _, value)
  if not value then return 0, 0 end
  if #value ~= LENGTH then return nil end
  local version, since, strikes, blocked_until = unpack_struct(FORMAT, value)
  if version ~= VERSION or now < blocked_until or since > now then return nil end
  return now < since + policy.window and strikes or 0, 0
end

local function undo() end

return { fields = 0, reads_string = true, prepare = prepare, consume = consume, undo = undo }
