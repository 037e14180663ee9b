const assert = require('node:assert/strict')

/** Makes one call within the quota of a third party. */
module.exports = async function proveCalls(createOutbound) {
  const vendor = createOutbound({ name: 'vendor', limits: [{ limit: 5, window: '1s' }] })
  const response = await vendor.fetch('data:,hello')
  assert.equal(await response.text(), 'hello')
  await vendor.close()
}
