const prove = require('./prove.cjs')

prove(async (name) => require(name)).then(() => console.log('cjs: ok'))
