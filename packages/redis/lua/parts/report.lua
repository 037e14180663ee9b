-- Builds the report of a key from `denied` and from `amount` and `detail`, which the algorithm's
-- `report` returns: amount · 2^27 + detail, if both fit; -1 minus that if denied. Otherwise a list:
-- { 1 if the request is allowed, 2 if only other policies deny it, else 0, amount, detail,
-- incarnation, ms to wait or to be held, if only the script knows them, and ms by which the key is
-- ahead of the clock }. An amount just below 2^53 is sent as a string (prelude.lua).
local report = amount * 134217728 + detail
if amount >= 67108863 or detail >= 134217728 then
  report = { denied and 0 or 1, amount > 9007199254740900 and string.format('%.0f', amount) or amount, detail, 0 }
elseif denied then
  report = -1 - report
end
