declare module 'koa2' {
  import koa = require('koa')
  export = koa
}
