-- Whether an image that was made of a server still tells who that server was: JSON; NULL: it was not made of one, or before this was looked at.
ALTER TABLE image ADD COLUMN identity {{text}};
