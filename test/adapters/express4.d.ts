// Express 4 installed under an alias: what the tests use of it has the types of 5.
declare module 'express4' {
  export { default } from 'express'
}
