-- Makes the report of a key from `denied`, and from the numbers `amount` and `detail` that the
-- algorithm's `report` gives: amount · 2^27 + detail, if both fit; after a denial -1 less that.
-- Otherwise a list: { 1 if the request is allowed, 2 if others than this policy deny it, else 0,
-- amount, detail, incarnation, ms to wait or to be held, if only the script knows them, and ms by
-- which the key is ahead of the clock }. An amount just below 2^53 goes as text (prelude.lua).
local report
if amount >= 67108863 or detail >= 134217728 then
  report = { denied and 0 or 1, amount > 9007199254740900 and string.format('%.0f', amount) or amount, detail, 0 }
elseif denied then
  report = -1 - (amount * 134217728 + detail)
else
  report = amount * 134217728 + detail
end
